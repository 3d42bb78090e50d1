package pg_test

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"appliance/internal/pg"
	"appliance/internal/testservices"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const group = "test-group"

// now is a fixed moment in the middle of a month; partitions are made around it.
var now = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

var topicID = [16]byte{0: 7, 15: 9}

// migrated is a database of this test's own with the schema and its partitions.
func migrated(t testing.TB) (*pg.DB, string) {
	t.Helper()
	url := testservices.Postgres(t)
	if _, err := pg.Migrate(t.Context(), pg.Config{URL: url}); err != nil {
		t.Fatal(err)
	}
	db := open(t, url)
	if _, err := db.EnsureMonths(t.Context(), now, 1, 1); err != nil {
		t.Fatal(err)
	}
	return db, url
}

func open(t testing.TB, url string) *pg.DB {
	t.Helper()
	db, err := pg.Open(t.Context(), pg.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func event(n int) pg.Row {
	id := fmt.Sprintf("evt-%09d", n)
	raw := fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":"/s","type":"t","data":{"n":%d}}`, id, n)
	return row(now.Add(time.Duration(n)*time.Millisecond), "/s", id, raw, int64(n))
}

func row(at time.Time, source, id, raw string, offset int64) pg.Row {
	return pg.Row{
		OccurredAt: at, Source: source, ID: id, Type: "t", Raw: []byte(raw), SHA256: sha256.Sum256([]byte(raw)),
		TopicID: topicID, Offset: offset,
	}
}

func events(from, until int) []pg.Row {
	rows := make([]pg.Row, 0, until-from)
	for n := from; n < until; n++ {
		rows = append(rows, event(n))
	}
	return rows
}

func position(epoch, next int64) pg.Position {
	return pg.Position{Topic: "topic", TopicID: topicID, Epoch: epoch, Next: next}
}

func claim(t testing.TB, db *pg.DB, owner string) pg.Claim {
	t.Helper()
	c, err := db.Claim(t.Context(), group, "topic", topicID, 0, owner)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// stored returns the number of rows and the checkpoint, -1 where none is stored.
func stored(t testing.TB, db *pg.DB) (events, next int64) {
	t.Helper()
	counts, err := db.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	points, err := db.Checkpoints(t.Context(), group)
	if err != nil {
		t.Fatal(err)
	}
	next = -1
	if len(points) == 1 && points[0].Found {
		next = points[0].Next
	}
	return counts.Events, next
}

func expectStored(t *testing.T, db *pg.DB, events, next int64) {
	t.Helper()
	if e, n := stored(t, db); e != events || n != next {
		t.Fatalf("%d rows and checkpoint %d, want %d and %d", e, n, events, next)
	}
}

func expectState(t *testing.T, err error, state, constraint string) {
	t.Helper()
	s, c, ok := pg.Code(err)
	if !ok || s != state || c != constraint {
		t.Fatalf("error %v: SQLSTATE %q, constraint %q; want %q, %q", err, s, c, state, constraint)
	}
}
