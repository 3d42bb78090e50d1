package pg_test

import (
	"context"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"appliance/internal/pg"
)

func TestPG17ARefusedBatchLeavesItsConnectionFitForTheNext(t *testing.T) {
	db, url := migrated(t)
	one, err := pg.Open(t.Context(), pg.Config{URL: url, MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	epoch := claim(t, db, "a").Epoch
	bad := event(1)
	bad.Raw = []byte(`{"specversion":"1.0","id":"evt-1","source":"/s","type":"t","data":"a\u0000b"}`)
	batch := []pg.Row{event(0), bad, event(2)}
	before := backend(t, one)
	_, err = one.Write(t.Context(), group, batch, []pg.Position{position(epoch, 3)})
	expectState(t, err, "22P05", "")
	expectStored(t, db, 0, -1)
	expectState(t, one.Try(t.Context(), batch), "22P05", "")
	for n, r := range []pg.Row{batch[0], batch[2]} {
		if err := one.Try(t.Context(), []pg.Row{r}); err != nil {
			t.Fatalf("row %d: %v", n, err)
		}
	}
	expectStored(t, db, 0, -1)
	if _, err := one.Write(t.Context(), group, []pg.Row{batch[0], batch[2]}, []pg.Position{position(epoch, 3)}); err != nil {
		t.Fatal(err)
	}
	expectStored(t, db, 2, 3)
	if after := backend(t, one); after != before {
		t.Errorf("a refused statement cost the connection: backend %d, then %d", before, after)
	}
}

func backend(t *testing.T, db *pg.DB) int {
	t.Helper()
	pid, err := pg.BackendPID(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestWhatTheDatabaseRefusesCarriesItsState(t *testing.T) {
	db, _ := migrated(t)
	noise := rand.New(rand.NewPCG(3, 4))
	letters := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"[noise.IntN(62)]
		}
		return string(b)
	}
	long := letters(2700)
	for _, c := range []struct {
		name, raw, state, constraint string
		at                           time.Time
	}{
		{"PG-01 a NUL escape", `{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{"m":"a\u0000b"}}`, "22P05", "", now},
		{"PG-04 a lone surrogate", `{"specversion":"1.0","id":"1","source":"/s","type":"t","data":"\ud83d"}`, "22P02", "", now},
		{"PG-05 a byte that is no UTF-8", "{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/s\",\"type\":\"t\",\"data\":\"\xff\"}", "22021", "", now},
		{"PG-07 an id longer than an index row", `{"specversion":"1.0","id":"` + long + `","source":"/s","type":"t"}`, "54000", "cloud_event_2026_11_occurred_at_ce_source_ce_id_idx", now},
		{"PG-11 no specversion", `{"id":"a","source":"/s","type":"t"}`, "23502", "", now},
		{"another specversion", `{"specversion":"0.3","id":"a","source":"/s","type":"t"}`, "23514", "cloud_event_specversion_ck", now},
		{"an empty id", `{"specversion":"1.0","id":"","source":"/s","type":"t"}`, "23514", "cloud_event_required_ck", now},
		{"no source", `{"specversion":"1.0","id":"a","type":"t"}`, "23502", "", now},
		{"a time of no partition", `{"specversion":"1.0","id":"a","source":"/s","type":"t"}`, "23514", "", now.AddDate(0, 7, 0)},
		{"no JSON", `{`, "22P02", "", now},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows := []pg.Row{row(c.at, "/s", "1", c.raw, 0)}
			_, err := db.Write(t.Context(), group, rows, nil)
			expectState(t, err, c.state, c.constraint)
			expectState(t, db.Try(t.Context(), rows), c.state, c.constraint)
			text := pg.Describe(err)
			if !strings.HasPrefix(text, "SQLSTATE "+c.state+": ") || len(text) > 1024 || strings.Contains(text, long) {
				t.Errorf("described as %q", text)
			}
		})
	}
	expectStored(t, db, 0, -1)
}

func TestPG31MissingRightsAndColumnsNameTheirState(t *testing.T) {
	db, address := migrated(t)
	epoch := claim(t, db, "a").Epoch
	exec(t, address, "ALTER TABLE events.cloud_event DROP COLUMN traceparent")
	_, err := db.Write(t.Context(), group, events(0, 1), []pg.Position{position(epoch, 1)})
	expectState(t, err, "42703", "")
	exec(t, address, "ALTER TABLE events.cloud_event ADD COLUMN traceparent text")
	user := "writer_" + strings.ReplaceAll(address[strings.LastIndex(address, "/")+1:strings.LastIndex(address, "/")+20], "?", "")
	exec(t, address, "CREATE ROLE "+user+" LOGIN PASSWORD 'pw'")
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), address)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close(context.Background())
		if _, err := conn.Exec(context.Background(), "DROP OWNED BY "+user+"; DROP ROLE "+user); err != nil {
			t.Error(err)
		}
	})
	exec(t, address, "GRANT USAGE ON SCHEMA events TO "+user)
	exec(t, address, "GRANT SELECT, UPDATE ON events.consumer_checkpoint TO "+user)
	limited, err := pg.Open(t.Context(), pg.Config{URL: as(t, address, user, "pw")})
	if err != nil {
		t.Fatal(err)
	}
	defer limited.Close()
	_, err = limited.Write(t.Context(), group, events(0, 1), []pg.Position{position(epoch, 1)})
	expectState(t, err, "42501", "")
	expectStored(t, db, 0, -1)
}

// as is the same database for another user.
func as(t *testing.T, database, user, password string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}
