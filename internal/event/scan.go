package event

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// MaxDepth is how deeply a stored value may be nested, the event's own braces included. PostgreSQL 15 gives up with
// 54001 between 13,000 and 14,000 levels of objects at its default max_stack_depth of 2 MB, and between 600 and 700 at
// the least that can be set, 100 kB: 512 is stored by every server. The scanner itself keeps one bit a level and does
// not recurse, so that no input can exhaust a stack here.
const MaxDepth = 512

// scanner reads JSON once, from left to right. It accepts exactly what RFC 8259 calls a JSON text and what PostgreSQL's
// `text::jsonb` takes, up to MaxDepth; pos is where it stopped.
type scanner struct {
	src     []byte
	pos     int
	escaped bool // the string read last has an escape
	label   span // the member name read last
	floor   int  // the depth at which the text begins
	depth   int
	objects [MaxDepth / 64]uint64 // bit d: level d is an object, else an array
}

// span is a string between its quotes.
type span struct {
	start, end int
	escaped    bool
}

// document reads one value with nothing but white space around it.
func (s *scanner) document() flaw {
	if f := s.value(); f != sound {
		return f
	}
	return s.end()
}

func (s *scanner) end() flaw {
	s.space()
	if s.pos < len(s.src) {
		return trailingText
	}
	return sound
}

func (s *scanner) space() {
	for s.pos < len(s.src) {
		switch s.src[s.pos] {
		case ' ', '\n', '\t', '\r':
			s.pos++
		default:
			return
		}
	}
}

// value reads one value, and the white space in front of it.
func (s *scanner) value() flaw {
	base := s.depth
	for {
		opened, f := s.begin()
		if f != sound {
			return f
		}
		if opened {
			continue
		}
		for next := false; !next; {
			if s.depth == base {
				return sound
			}
			if next, f = s.follow(); f != sound {
				return f
			}
		}
	}
}

// begin reads a scalar, an empty container, or the opening of one that has a value inside.
func (s *scanner) begin() (opened bool, f flaw) {
	s.space()
	if s.pos >= len(s.src) {
		return false, s.missing()
	}
	switch c := s.src[s.pos]; c {
	case '"':
		return false, s.text()
	case '{', '[':
		return s.open(c == '{')
	case 't':
		return false, s.literal("true")
	case 'f':
		return false, s.literal("false")
	case 'n':
		return false, s.literal("null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return false, s.number()
	}
	return false, strayByte
}

func (s *scanner) missing() flaw {
	if s.depth == s.floor {
		return noValue
	}
	return cutShort
}

func (s *scanner) open(object bool) (bool, flaw) {
	if s.depth == MaxDepth {
		return false, tooDeep
	}
	s.pos++
	s.space()
	closing := byte(']')
	if object {
		closing = '}'
	}
	if s.pos < len(s.src) && s.src[s.pos] == closing {
		s.pos++
		return false, sound
	}
	word, bit := s.depth/64, uint64(1)<<(s.depth%64)
	s.objects[word] &^= bit
	if object {
		s.objects[word] |= bit
	}
	s.depth++
	if object {
		return true, s.name()
	}
	return true, sound
}

// follow reads what stands after a value inside a container: a comma, after which another value follows, or its end.
func (s *scanner) follow() (next bool, f flaw) {
	s.space()
	if s.pos >= len(s.src) {
		return false, cutShort
	}
	level := s.depth - 1
	object := s.objects[level/64]&(1<<(level%64)) != 0
	switch c := s.src[s.pos]; {
	case c == ',' && object:
		s.pos++
		return true, s.name()
	case c == ',':
		s.pos++
		return true, sound
	case c == '}' && object, c == ']' && !object:
		s.pos++
		s.depth--
		return false, sound
	case object:
		return false, wantCommaOrBrace
	}
	return false, wantCommaOrBracket
}

// name reads a member's name and the colon after it.
func (s *scanner) name() flaw {
	s.space()
	if s.pos >= len(s.src) {
		return cutShort
	}
	if s.src[s.pos] != '"' {
		return wantName
	}
	start := s.pos + 1
	if f := s.text(); f != sound {
		return f
	}
	s.label = span{start, s.pos - 1, s.escaped}
	s.space()
	if s.pos >= len(s.src) {
		return cutShort
	}
	if s.src[s.pos] != ':' {
		return wantColon
	}
	s.pos++
	return sound
}

func (s *scanner) literal(word string) flaw {
	rest := s.src[s.pos:]
	if len(rest) < len(word) || string(rest[:len(word)]) != word {
		return badLiteral
	}
	s.pos += len(word)
	return sound
}

// text reads a string. Eight bytes are looked at together as long as none of them is one that matters.
func (s *scanner) text() flaw {
	s.escaped = false
	i := s.pos + 1
	for {
		for i+8 <= len(s.src) {
			if m := stops(binary.LittleEndian.Uint64(s.src[i:])); m != 0 {
				i += bits.TrailingZeros64(m) / 8
				break
			}
			i += 8
		}
		if s.pos = i; i >= len(s.src) {
			return cutShort
		}
		switch c := s.src[i]; {
		case c == '"':
			s.pos = i + 1
			return sound
		case c == '\\':
			s.escaped = true
			n, f := escape(s.src[i:])
			if f != sound {
				return f
			}
			i += n
		case c < ' ':
			return rawControl
		case c < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRune(s.src[i:])
			if r == utf8.RuneError && n == 1 {
				return notUTF8
			}
			i += n
		}
	}
}

// stops marks (with the high bit) the first of eight bytes that is a quote, a backslash, a control character or not
// ASCII. Marks above the first can be wrong: a borrow runs upwards only.
func stops(w uint64) uint64 {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	quote, slash := w^(ones*'"'), w^(ones*'\\')
	return ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*' ')&^w | w) & high
}

// escape reads one escape, or two where the first is half of a surrogate pair, and returns its length.
func escape(b []byte) (int, flaw) {
	if len(b) < 2 {
		return 0, cutShort
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, sound
	case 'u':
	default:
		return 0, badEscape
	}
	first, ok := hex4(b[2:])
	switch {
	case !ok:
		return 0, badEscape
	case first == 0:
		return 0, nulEscape
	case first < 0xD800 || first > 0xDFFF:
		return 6, sound
	case first > 0xDBFF || len(b) < 8 || b[6] != '\\' || b[7] != 'u':
		return 0, loneSurrogate
	}
	if second, ok := hex4(b[8:]); !ok || second < 0xDC00 || second > 0xDFFF {
		return 0, loneSurrogate
	}
	return 12, sound
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
