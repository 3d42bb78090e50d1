package health

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestRedactor(t *testing.T) {
	redact := Redactor("s3cr3t-of-the-broker", "abc", "")
	for name, c := range map[string]struct{ in, want string }{
		"a cause without a secret stays":        {"dial tcp 10.0.0.1:5432: connection refused", "dial tcp 10.0.0.1:5432: connection refused"},
		"the password of a URL goes":            {"parse postgres://app:hunter22@db:5432/events: no", "parse postgres://app:(secret)@db:5432/events: no"},
		"a password with an at sign goes":       {"postgres://app:p@ss@db/x", "postgres://app:(secret)@db/x"},
		"a keyword's password goes":             {"host=db user=app password=hunter22 dbname=x", "host=db user=app password=(secret) dbname=x"},
		"a quoted password goes whole":          {"password='hunter 22' dbname=x", "password=(secret) dbname=x"},
		"a known secret goes wherever it is":    {"SASL s3cr3t-of-the-broker refused", "SASL (secret) refused"},
		"a secret too short to be one stays":    {"abc", "abc"},
		"a message of several lines is one":     {"ERROR: no\nDETAIL: \x1b[31mrow", "ERROR: no DETAIL:  [31mrow"},
		"bytes that are not UTF-8 are replaced": {"a\xffb", "a\uFFFDb"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := redact(c.in); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestADetailIsAlwaysBoundedUTF8AndNeverHoldsTheSecret(t *testing.T) {
	const secret = "correct horse battery"
	redact := Redactor(secret)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "before") + secret + strings.Repeat(rapid.String().Draw(t, "after"), 40)
		got := redact(text)
		if len(got) > 512 || !utf8.ValidString(got) || strings.Contains(got, secret) {
			t.Fatalf("%d bytes: %q", len(got), got)
		}
	})
}
