package pg

import (
	"strings"
	"unicode/utf8"
)

// maxText bounds what the server or a message of unknown origin may say: a detail of a dead letter has at most this many
// bytes, and a key of the index no more than 2,704.
const maxText = 1024

// clip cuts s to at most maxText bytes of valid UTF-8 that text of PostgreSQL can hold.
func clip(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= maxText {
		return s
	}
	n := maxText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
