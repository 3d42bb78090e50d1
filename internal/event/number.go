package event

// What PostgreSQL's numeric can hold (seen on 15, and the same up to 18): the first digit that is not zero stands at
// most at 10^131071, and at most 16,383 digits stand after the point, zeros counted. Whatever the digits, an exponent of
// 2^30-1 or more is refused.
const (
	maxMagnitude = 131071
	maxScale     = 16383
	maxExponent  = 1<<30 - 2
)

// number reads a number and leaves pos behind it, or at its start where numeric cannot hold it.
func (s *scanner) number() flaw {
	start := s.pos
	if s.src[s.pos] == '-' {
		s.pos++
	}
	first := s.pos
	whole := s.digits()
	if whole == 0 {
		return badNumber
	}
	if whole > 1 && s.src[first] == '0' {
		s.pos = first
		return leadingZero
	}
	fraction, exponent := 0, 0
	if s.at('.') {
		s.pos++
		if fraction = s.digits(); fraction == 0 {
			return badNumber
		}
	}
	last := s.pos
	if s.at('e') || s.at('E') {
		var ok bool
		if exponent, ok = s.exponent(); !ok {
			return badNumber
		}
	}
	if exponent == 0 && last-first <= maxScale {
		return sound
	}
	f := fits(s.src[first:last], whole, fraction, exponent)
	if f != sound {
		s.pos = start
	}
	return f
}

func (s *scanner) at(c byte) bool { return s.pos < len(s.src) && s.src[s.pos] == c }

func (s *scanner) digits() int {
	start := s.pos
	for s.pos < len(s.src) && s.src[s.pos]-'0' <= 9 {
		s.pos++
	}
	return s.pos - start
}

// exponent reads the letter, the sign and the digits. A value beyond maxExponent comes back as one just beyond it.
func (s *scanner) exponent() (int, bool) {
	s.pos++
	negative := s.at('-')
	if negative || s.at('+') {
		s.pos++
	}
	start := s.pos
	n := s.digits()
	exponent := 0
	for _, c := range s.src[start : start+n] {
		exponent = min(exponent*10+int(c-'0'), maxExponent+1)
	}
	if negative {
		exponent = -exponent
	}
	return exponent, n > 0
}

// fits decides on the digits (a point may stand among them), of which whole stand before the point and fraction after it.
func fits(digits []byte, whole, fraction, exponent int) flaw {
	if exponent > maxExponent {
		return numberOverflow
	}
	if exponent < -maxExponent || fraction-exponent > maxScale {
		return numberTooFine
	}
	zeros := 0
	for _, c := range digits {
		switch c {
		case '.':
			continue
		case '0':
			zeros++
			continue
		}
		if whole-1-zeros+exponent > maxMagnitude {
			return numberOverflow
		}
		return sound
	}
	return sound
}
