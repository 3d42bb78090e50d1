package event

// traceparent returns the record's W3C trace context, nil where it has none, an invalid one or more than one: a new trace
// begins then, and a forged id is never passed on.
func (r *Record) traceparent() []byte {
	found := -1
	for i := range r.Headers {
		if r.Headers[i].Key != "traceparent" {
			continue
		}
		if found >= 0 {
			return nil
		}
		found = i
	}
	if found < 0 {
		return nil
	}
	return parseTraceparent(r.Headers[found].Value)
}

// parseTraceparent reads https://www.w3.org/TR/trace-context/ section 3.2. A header of a later version is restated in
// version 00, as section 4 asks: its ids and its sampled flag.
func parseTraceparent(s []byte) []byte {
	const shape = "00-00000000000000000000000000000000-0000000000000000-00"
	if len(s) < len(shape) || len(s) > len(shape) && (string(s[:2]) == "00" || s[len(shape)] != '-') {
		return nil
	}
	for i := range len(shape) {
		c := s[i]
		if shape[i] == '-' && c != '-' || shape[i] == '0' && c-'0' > 9 && c-'a' > 5 {
			return nil
		}
	}
	if string(s[:2]) == "ff" || string(s[3:35]) == shape[3:35] || string(s[36:52]) == shape[36:52] {
		return nil
	}
	if string(s[:2]) == "00" {
		return s
	}
	sampled := byte('0')
	if low := s[54]; low <= '9' && (low-'0')&1 == 1 || low > '9' && (low-'a')&1 == 1 {
		sampled = '1'
	}
	out := append([]byte("00"), s[2:53]...)
	return append(out, '0', sampled)
}
