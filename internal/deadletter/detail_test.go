package deadletter_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"appliance/internal/deadletter"
)

func TestRedact(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"a URL's user and password": {
			"dial postgres://app:hunter2@db:5432/events: refused", "dial postgres://(secret)@db:5432/events: refused",
		},
		"a password with an at sign and a slash": {"jdbc:postgresql://app:h@nter/2@db/events", "jdbc:postgresql://(secret)@db/events"},
		"a URL without credentials":              {"dial http://db:5432/events", "dial http://db:5432/events"},
		"a DSN":                                  {"host=db user=app password=hunter2 dbname=e", "host=db user=app password=(secret) dbname=e"},
		"a quoted DSN":                           {`password='hunter \'2 x' host=db`, "password=(secret) host=db"},
		"a quote that was cut":                   {"password='hunter", "password=(secret)"},
		"spaces around the sign":                 {"password = hunter2", "password = (secret)"},
		"a variable":                             {"PGPASSWORD=hunter2 psql", "PGPASSWORD=(secret) psql"},
		"a query parameter":                      {"db?sslpassword=hunter2&x=1", "db?sslpassword=(secret)&x=1"},
		"JSON":                                   {`{"password": "hunter2", "a": 1}`, `{"password": (secret), "a": 1}`},
		"a property":                             {"sasl.password: hunter2", "sasl.password: (secret)"},
		"a bearer token":                         {"Authorization: Bearer eyJhbGciOi.J9.abc", "Authorization: Bearer (secret)"},
		"words about passwords": {
			`password authentication failed for user "app"`, `password authentication failed for user "app"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := deadletter.Redact(tc.in); got != tc.want {
				t.Errorf("Redact(%q)\n got %q\nwant %q", tc.in, got, tc.want)
			}
		})
	}
}

func TestTrim(t *testing.T) {
	for name, tc := range map[string]struct {
		in    string
		limit int
		want  string
	}{
		"what fits stays":                      {"für", 4, "für"},
		"a cut falls between characters":       {"für", 2, "f"},
		"no room at all":                       {"für", 0, ""},
		"a byte that is no text is written":    {"a\xffb", 10, `a\xffb`},
		"such a byte that doesn't fit is left": {"a\xffb", 4, "a"},
		"U+FFFD that was there stays":          {"a\uFFFDb", 10, "a\uFFFDb"},
		"U+0000 is written":                    {"a\x00b", 10, `a\x00b`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := deadletter.Trim(tc.in, tc.limit); got != tc.want {
				t.Errorf("Trim(%q, %d) = %q, want %q", tc.in, tc.limit, got, tc.want)
			}
		})
	}
}

func TestDetailIsAlwaysFitToShow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		junk := string(rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(t, "bytes"))
		got := deadletter.Detail("://u:hunter2@h " + junk + " password=hunter2")
		if !utf8.ValidString(got) || len(got) > deadletter.MaxDetail || strings.ContainsAny(got, "\x00\uFFFD") ||
			strings.Contains(got, "hunter2") {
			t.Fatalf("Detail = %q", got)
		}
		if again := deadletter.Detail(got); again != got {
			t.Fatalf("a second Detail changed\n%q to\n%q", got, again)
		}
	})
}

func TestFingerprint(t *testing.T) {
	same := func(a, b string) {
		t.Helper()
		if deadletter.Fingerprint("r", a) != deadletter.Fingerprint("r", b) {
			t.Errorf("differ:\n%s\n%s", a, b)
		}
	}
	other := func(a, b string) {
		t.Helper()
		if deadletter.Fingerprint("r", a) == deadletter.Fingerprint("r", b) {
			t.Errorf("are the same:\n%s\n%s", a, b)
		}
	}
	same("id and source have 2700 bytes together", "id and source have 2048 bytes together")
	same(`invalid input syntax for type json: "abc"`, `invalid input syntax for type json: "d e f"`)
	same("value 'a b' is too long", "value 'c' is too long")
	same("Wert «a» ist zu lang", "Wert «b c» ist zu lang")
	same("Key (id)=(a, b) exists", "Key (id)=(c) exists")
	same("event 5f0c6b1e-7b1a-4c55-9d9e-000000000001 refused", "event 6a0c6b1e-7b1a-4c55-9d9e-0000000000ff refused")
	same("relation cloud_event_2026_05 is full", "relation cloud_event_2027_11 is full")
	same(`it can't read 'x'`, `it can't read 'y'`)
	same("a  b\n", "A b")
	same(`cut in the middle of "a val`, `cut in the middle of "another`)
	same("at 1 of 2 3 4", "at 9 of 7")
	other("column a is null", "column b is null")
	other("SQLSTATE missing", "SQLSTATE repeated")
	other(`can't read`, `cannot read`)
	if deadletter.Fingerprint("a", "b") == deadletter.Fingerprint("c", "b") {
		t.Error("the reason does not count")
	}
	if got := deadletter.Fingerprint("no-time", "time: the event has none"); len(got) != 16 || got != deadletter.Fingerprint("no-time", "time: the event has none") {
		t.Errorf("fingerprint %q", got)
	}
}

// The fingerprint is stored, so it may not change with the program.
func TestFingerprintIsTheSameInEveryRelease(t *testing.T) {
	if got := deadletter.Fingerprint("unpersistable", `SQLSTATE 22003: value "9e99" is out of range`); got != "28df129c7b631e34" {
		t.Errorf("fingerprint %s", got)
	}
}
