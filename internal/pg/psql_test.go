package pg

import "testing"

func TestUserAndPasswordStandBesideTheURL(t *testing.T) {
	for name, tc := range map[string]struct{ url, user, password, want string }{
		"fill what the URL leaves out":            {"postgres://h:5/d", "u", "p", "postgres://u:p@h:5/d"},
		"of a JDBC URL too":                       {"jdbc:postgresql://h:5/d", "u", "p", "postgresql://u:p@h:5/d"},
		"and give way to the URL's own":           {"postgres://a:b@h/d", "u", "p", "postgres://a:b@h/d"},
		"the password alone is filled in":         {"postgres://a@h/d", "u", "p@:/", "postgres://a:p%40%3A%2F@h/d"},
		"parameters count as the URL's own":       {"postgres://h/d?user=a&password=b", "u", "p", "postgres://h/d?user=a&password=b"},
		"without a password there is none":        {"postgres://h/d", "u", "", "postgres://u@h/d"},
		"what is no URL of a database is refused": {"mysql://h/d", "u", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Config{URL: tc.url, User: tc.user, Password: tc.password}).PSQL(); got != tc.want {
				t.Fatalf("got %s, want %s", got, tc.want)
			}
		})
	}
}
