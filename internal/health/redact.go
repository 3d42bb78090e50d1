package health

import (
	"regexp"
	"strings"

	"appliance/internal/event"
)

const (
	hidden       = "(secret)"
	maxDetail    = 512 // a readiness body is read by people in a hurry and by probes that cut at some kilobytes
	minSecretLen = 4   // a shorter "secret" would cut holes into ordinary words
)

// Redactor returns a function that makes the text of a cause fit to be shown without a token: the given secrets, the
// password of a URL and the value of a password setting are replaced, control characters become spaces, and what is left
// is valid UTF-8 of at most 512 bytes. Secrets shorter than four bytes are ignored.
func Redactor(secrets ...string) func(string) string {
	userinfo := regexp.MustCompile(`(://[^\s/@:]*):\S*@`)
	setting := regexp.MustCompile(`(?i)\b((?:sasl[._])?pass(?:word|wd)?|secret|token)(\s*[=:]\s*)('[^']*'|"[^"]*"|[^\s,;&]+)`)
	var known []string
	for _, s := range secrets {
		if len(s) >= minSecretLen {
			known = append(known, s, hidden)
		}
	}
	replace := strings.NewReplacer(known...)
	return func(text string) string {
		text = replace.Replace(text)
		text = userinfo.ReplaceAllString(text, "${1}:"+hidden+"@")
		text = setting.ReplaceAllString(text, "${1}${2}"+hidden)
		return event.Truncate(plain(text), maxDetail)
	}
}

// plain returns text as one line of valid UTF-8.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r <= 0x9f {
			return ' '
		}
		return r
	}, text)
}
