package pg

import (
	"strings"
	"unicode/utf8"
)

// clip cuts s to at most n bytes of valid UTF-8 that text of PostgreSQL can hold.
func clip(s string, n int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
