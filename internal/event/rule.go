package event

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// The rules below return "" for what keeps them, and otherwise how it breaks them, as the end of a sentence that begins
// with the attribute's name.

// nameRule is the naming rule of the specification; `data` is the name of the payload and of no attribute.
func nameRule(name string) string {
	if name == "" {
		return "an attribute has an empty name"
	}
	if len(name) > MaxAttribute {
		return fmt.Sprintf("the name has %d bytes, at most %d are allowed", len(name), MaxAttribute)
	}
	for i := range len(name) {
		if c := name[i]; c-'a' > 25 && c-'0' > 9 {
			return "the name must consist of lower-case letters a to z and digits"
		}
	}
	if name == "data" {
		return "an attribute must not be called data"
	}
	return ""
}

func (e *extension) rule() string {
	switch e.kind {
	case unset, boolean:
		return ""
	case integer:
		return integerRule(e.data)
	case text:
		// The partitioning extension: "MUST be a non-empty string".
		if len(e.data) == 0 && e.name == "partitionkey" {
			return "must not be empty"
		}
		return textRule(e.data)
	case number:
		return "a number must be an integer, without fraction and exponent"
	case composite:
	}
	return "must be a string, a boolean or an integer, and is " + e.kind.String()
}

// integerRule admits -2^31 to 2^31-1, the specification's Integer, in the form -?digits that the scanner has read.
func integerRule(literal []byte) string {
	limit := int64(1)<<31 - 1
	if literal[0] == '-' {
		literal, limit = literal[1:], limit+1
	}
	n := int64(0)
	for _, c := range literal {
		if n = n*10 + int64(c-'0'); n > limit {
			return "an integer must be within -2147483648 and 2147483647"
		}
	}
	return ""
}

func (v *value) nonEmptyRule() string {
	if v.kind != text {
		return "must be a string, and is " + v.kind.String()
	}
	if len(v.data) == 0 {
		return "must not be empty"
	}
	return textRule(v.data)
}

// textRule is the specification's String: Unicode without control characters, non-characters and surrogates (which
// UTF-8 cannot write).
func textRule(s []byte) string {
	if len(s) > MaxAttribute {
		return fmt.Sprintf("has %d bytes, at most %d are allowed", len(s), MaxAttribute)
	}
	for i := printable(s); i < len(s); {
		r, n := utf8.DecodeRune(s[i:])
		switch {
		case r == utf8.RuneError && n <= 1:
			return fmt.Sprintf("the byte 0x%02X at %d is not UTF-8", s[i], i)
		case r < ' ', r >= 0x7F && r <= 0x9F:
			return fmt.Sprintf("holds the control character U+%04X", r)
		case r >= 0xFDD0 && r <= 0xFDEF, r&0xFFFE == 0xFFFE:
			return fmt.Sprintf("holds U+%04X, which is not a character", r)
		}
		i += n
	}
	return ""
}

// printable returns how many leading bytes, in steps of eight, are printable ASCII.
func printable(s []byte) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := binary.LittleEndian.Uint64(s[i:])
		if del := w ^ ones*0x7F; ((w-ones*' ')&^w|(del-ones)&^del|w)&high != 0 {
			break
		}
	}
	return i
}
