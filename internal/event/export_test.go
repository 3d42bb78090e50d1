package event

// Scan is the scanner over a whole text: "" or what it found, and whether that is its own limit of nesting.
func Scan(text []byte) (found string, deep bool) {
	s := scanner{src: text}
	f := s.document()
	if f == sound {
		return "", false
	}
	return f.String(), f == tooDeep
}
