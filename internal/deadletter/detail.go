package deadletter

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"unicode/utf8"
)

// MaxDetail bounds a detail in bytes: a driver's error may quote a row of megabytes.
const MaxDetail = 1024

// secret stands where a credential stood.
const secret = "(secret)"

const (
	// credentials of a URL: all from :// to the last @ of the word, since a password may hold @ and / itself.
	urlCredentials = `://[^\s"'<>]*@`
	// name=value, name: value and "name":"value" whose name ends like a password's; quoted as libpq and JSON do.
	namedCredentials = `(?i)((?:password|passwd|pwd|secret|api[_-]?key|access[_-]?token)["']?\s*[=:]\s*)` +
		`(\(secret\)|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^\s,;&)]+)`
	bearerCredentials = `(?i)\b((?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}`
)

// Detail makes the text of an error fit to leave the house: without credentials, valid UTF-8, at most MaxDetail bytes. It
// is cut last: a cut could take from a credential what it is recognised by.
func Detail(s string) string { return Trim(Redact(Trim(s, math.MaxInt)), MaxDetail) }

// Redact replaces what looks like a credential: user and password of a URL, the value of anything named like a password,
// and an Authorization header's token. It prefers to hide too much.
func Redact(s string) string {
	s = regexp.MustCompile(urlCredentials).ReplaceAllString(s, "://"+secret+"@")
	s = regexp.MustCompile(namedCredentials).ReplaceAllString(s, "${1}"+secret)
	return regexp.MustCompile(bearerCredentials).ReplaceAllString(s, "${1}"+secret)
}

// Trim returns s as valid UTF-8 of at most limit bytes, cut between characters. A byte that is no UTF-8 is written as
// \xNN, never as U+FFFD, and so is U+0000, which PostgreSQL's text refuses.
func Trim(s string, limit int) string {
	var b strings.Builder
	for i, r := range s {
		piece := string(r)
		if r == 0 || r == utf8.RuneError && !strings.HasPrefix(s[i:], piece) {
			piece = fmt.Sprintf(`\x%02x`, s[i])
		}
		if b.Len()+len(piece) > limit {
			break
		}
		b.WriteString(piece)
	}
	return b.String()
}
