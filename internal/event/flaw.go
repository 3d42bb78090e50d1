package event

// flaw is what the scanner finds wrong with a text: either it is not JSON, or it is JSON that jsonb cannot hold.
type flaw uint8

const (
	sound flaw = iota

	// Not JSON, by RFC 8259.
	noValue
	cutShort
	strayByte
	badLiteral
	badNumber
	leadingZero
	rawControl
	badEscape
	wantName
	wantColon
	wantCommaOrBrace
	wantCommaOrBracket
	trailingText

	// JSON, or nearly, that jsonb refuses: 22P05, 22P02, 22021, 54001 and 22003 in this order.
	nulEscape
	loneSurrogate
	notUTF8
	tooDeep
	numberOverflow
	numberTooFine
)

// storage tells the second kind from the first.
func (f flaw) storage() bool { return f >= nulEscape }

// String completes "the value is not JSON: " or "jsonb cannot hold ".
func (f flaw) String() string {
	switch f {
	case sound:
		return "nothing"
	case noValue:
		return "no value"
	case cutShort:
		return "the text ends inside a value"
	case strayByte:
		return "no value begins with this byte"
	case badLiteral:
		return "a literal other than true, false and null"
	case badNumber:
		return "a number without the digits it needs"
	case leadingZero:
		return "a number with a leading zero"
	case rawControl:
		return "a control character in a string that is not escaped"
	case badEscape:
		return "an unknown escape in a string"
	case wantName:
		return "a member name in double quotes is missing"
	case wantColon:
		return "a colon after a member name is missing"
	case wantCommaOrBrace:
		return "a comma or a closing brace is missing"
	case wantCommaOrBracket:
		return "a comma or a closing bracket is missing"
	case trailingText:
		return "text after the value"
	case nulEscape:
		return "the character U+0000"
	case loneSurrogate:
		return "half of a surrogate pair"
	case notUTF8:
		return "bytes that are not UTF-8"
	case tooDeep:
		return "a value nested deeper than 512 levels"
	case numberOverflow:
		return "a number with more than 131072 digits before its decimal point"
	case numberTooFine:
		return "a number with more than 16383 digits after its decimal point"
	}
	return "an unknown flaw"
}
