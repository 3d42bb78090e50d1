package event

import "time"

// parseTime reads the timestamp of RFC 3339, section 5.6: `T` and `Z` in either case, any number of fractional digits,
// an offset of hours and minutes, -00:00 too. The instant is UTC, cut (not rounded) to microseconds, which is what
// PostgreSQL's timestamptz holds.
//
// The second 60 is read where a leap second can be, at 23:59:60 UTC on the last day of a month, and is, as in POSIX and
// PostgreSQL, the first second of the next month. rule is "" or says what is wrong.
func parseTime(s []byte) (at time.Time, rule string) {
	const shape = "0000-00-00T00:00:00" // and a zone of at least one byte
	if len(s) <= len(shape) {
		return at, "must be an RFC 3339 timestamp such as 2026-11-30T09:00:00Z"
	}
	for i := range len(shape) {
		c := s[i]
		if shape[i] == '0' && c-'0' > 9 || (shape[i] == '-' || shape[i] == ':') && c != shape[i] || i == 10 && c|0x20 != 't' {
			return at, "must be an RFC 3339 timestamp such as 2026-11-30T09:00:00Z"
		}
	}
	year, month, day := two(s)*100+two(s[2:]), two(s[5:]), two(s[8:])
	hour, minute, second := two(s[11:]), two(s[14:]), two(s[17:])
	if month < 1 || month > 12 || day < 1 || day > daysIn(year, month) {
		return at, "names a day that the calendar doesn't have"
	}
	if hour > 23 || minute > 59 || second > 60 {
		return at, "names a time of day that doesn't exist"
	}
	micros, rest, ok := parseFraction(s[len(shape):])
	if !ok {
		return at, "has a decimal point without digits"
	}
	offset, ok := parseOffset(rest)
	if !ok {
		return at, "must end with Z or an offset such as +01:00"
	}
	at = time.Date(year, time.Month(month), day, hour, minute-offset, second, micros*1000, time.UTC)
	if second == 60 && (at.Day() != 1 || at.Hour() != 0 || at.Minute() != 0) {
		return time.Time{}, "has a leap second that is not at the end of a month in UTC"
	}
	return at, ""
}

func two(s []byte) int { return int(s[0]-'0')*10 + int(s[1]-'0') }

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// parseFraction reads a point and digits where they are, and keeps six of them.
func parseFraction(s []byte) (micros int, rest []byte, ok bool) {
	if len(s) == 0 || s[0] != '.' {
		return 0, s, true
	}
	s = s[1:]
	n := 0
	for n < len(s) && s[n]-'0' <= 9 {
		if n < 6 {
			micros = micros*10 + int(s[n]-'0')
		}
		n++
	}
	for i := n; i < 6; i++ {
		micros *= 10
	}
	return micros, s[n:], n > 0
}

// parseOffset reads the zone and returns its minutes east of UTC.
func parseOffset(s []byte) (minutes int, ok bool) {
	if len(s) == 1 {
		return 0, s[0]|0x20 == 'z'
	}
	if len(s) != 6 || s[0] != '+' && s[0] != '-' || s[3] != ':' {
		return 0, false
	}
	for _, i := range []int{1, 2, 4, 5} {
		if s[i]-'0' > 9 {
			return 0, false
		}
	}
	hours, rest := two(s[1:]), two(s[4:])
	if hours > 23 || rest > 59 {
		return 0, false
	}
	if minutes = hours*60 + rest; s[0] == '-' {
		minutes = -minutes
	}
	return minutes, true
}
