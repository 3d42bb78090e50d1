package pg_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"appliance/internal/pg"
	"appliance/internal/testservices"
)

func TestTheURLsThatAreAccepted(t *testing.T) {
	given, err := url.Parse(testservices.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	at := given.Host + given.Path
	password, _ := given.User.Password()
	for _, c := range []struct {
		name string
		cfg  pg.Config
	}{
		{"postgres", pg.Config{URL: given.String()}},
		{"postgresql", pg.Config{URL: strings.Replace(given.String(), "postgres://", "postgresql://", 1)}},
		{"JDBC with user and password apart", pg.Config{URL: "jdbc:postgresql://" + at + "?sslmode=disable", User: given.User.Username(), Password: password}},
		{"JDBC with its own parameters", pg.Config{URL: "jdbc:postgresql://" + at + "?user=" + given.User.Username() +
			"&password=" + url.QueryEscape(password) + "&ssl=false&reWriteBatchedInserts=true&ApplicationName=x&currentSchema=events&sslmode=disable"}},
		{"the URL's own user wins over one apart", pg.Config{URL: given.String(), User: "nobody"}},
		{"behind a pooler in transaction mode", pg.Config{URL: given.String(), TransactionPooling: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			db, err := pg.Open(t.Context(), c.cfg)
			if err != nil {
				t.Fatal(err)
			}
			db.Close()
		})
	}
}

func TestNoErrorShowsTheSecret(t *testing.T) {
	const secret = "s3cr/t@x"
	for _, c := range []struct {
		name string
		cfg  pg.Config
		says string
	}{
		{"a password with unescaped characters", pg.Config{URL: "postgres://u:s3cr/t@x@localhost/db"}, "percent-encode"},
		{"a bad escape in the password", pg.Config{URL: "postgres://u:%zzs3cr@localhost/db"}, "percent-encode"},
		{"another scheme", pg.Config{URL: "mysql://u:s3cr%2Ft%40x@localhost/db"}, "must begin with"},
		{"a keyword string", pg.Config{URL: "host=localhost password=s3cr/t@x"}, "must begin with"},
		{"an unknown sslmode", pg.Config{URL: "postgres://u:s3cr%2Ft%40x@localhost/db?sslmode=maybe"}, "sslmode"},
		{"an unknown sslmode, password apart", pg.Config{URL: "postgres://u@localhost/db?sslmode=maybe", Password: secret}, "sslmode"},
		{"a password in the query", pg.Config{URL: "postgres://u@localhost/db?password=s3cr%2Ft%40x&connect_timeout=x"}, "connect_timeout"},
		{"a password where another value belongs", pg.Config{URL: "postgres://u@localhost/db?target_session_attrs=s3cr%2Ft%40x", Password: secret}, "(secret)"},
		{"an unknown JDBC parameter", pg.Config{URL: "jdbc:postgresql://localhost/db?password=s3cr%2Ft%40x&frobnicate=1"}, `"frobnicate"`},
		{"nobody listens", pg.Config{URL: "postgres://u:s3cr%2Ft%40x@127.0.0.1:1/db?sslmode=disable", ConnectTimeout: time.Second}, "connect as u to db"},
		{"nothing at all", pg.Config{}, "must begin with"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := pg.Open(t.Context(), c.cfg)
			if err == nil {
				t.Fatal("it was accepted")
			}
			for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
				if strings.Contains(text, "s3cr") || strings.Contains(text, "t@x") {
					t.Errorf("the secret is in %q", text)
				}
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q does not say %q", err, c.says)
			}
		})
	}
}

func TestASecondLookFindsTheDatabaseGone(t *testing.T) {
	db, _ := migrated(t)
	if err := db.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	db.Close()
	if err := db.Ping(t.Context()); err == nil {
		t.Error("a closed pool answers")
	}
}
