package pg_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"appliance/internal/pg"
)

// exec runs a statement on a connection of the test's own, as an operator or another program would.
func exec(t testing.TB, url, statement string) {
	t.Helper()
	conn := connect(t, url)
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func TestWriteStoresRowsAndCheckpointTogether(t *testing.T) {
	db, url := migrated(t)
	epoch := claim(t, db, "a").Epoch
	written, err := db.Write(t.Context(), group, events(0, 500), []pg.Position{position(epoch, 500)})
	if err != nil || written != 500 {
		t.Fatalf("%d written, %v", written, err)
	}
	expectStored(t, db, 500, 500)
	// Redelivery: nothing new, no error, the same checkpoint.
	written, err = db.Write(t.Context(), group, events(0, 501), []pg.Position{position(epoch, 501)})
	if err != nil || written != 1 {
		t.Fatalf("redelivery: %d written, %v", written, err)
	}
	expectStored(t, db, 501, 501)
	want := event(3)
	want.Traceparent, want.ID = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "traced"
	want.Raw = []byte(`{"specversion":"1.0","id":"traced","source":"/s","type":"t","subject":"x","datacontenttype":"text/plain"}`)
	want.Partition = 4
	if _, err := db.Write(t.Context(), group, []pg.Row{want}, nil); err != nil {
		t.Fatal(err)
	}
	var got pg.Row
	var subject, contentType, sha string
	err = connect(t, url).QueryRow(t.Context(), `SELECT occurred_at, ce_source, ce_id, ce_type, origin_topic_id,
 origin_partition, origin_offset, traceparent, ce_subject, ce_datacontenttype, encode(payload_sha256, 'hex')
 FROM events.cloud_event WHERE ce_id = 'traced' AND ingest_xid < pg_snapshot_xmax(pg_current_snapshot())
 AND event_uid > 0 AND ingested_at <= clock_timestamp()`).Scan(&got.OccurredAt, &got.Source,
		&got.ID, &got.Type, &got.TopicID, &got.Partition, &got.Offset, &got.Traceparent, &subject, &contentType, &sha)
	if err != nil {
		t.Fatal(err)
	}
	got.OccurredAt, got.Raw, got.SHA256 = got.OccurredAt.UTC(), want.Raw, want.SHA256
	if !equalRows(got, want) || subject != "x" || contentType != "text/plain" || len(sha) != 64 {
		t.Errorf("stored %+v %q %q %q, want %+v", got, subject, contentType, sha, want)
	}
}

func equalRows(a, b pg.Row) bool {
	same := bytes.Equal(a.Raw, b.Raw)
	a.Raw, b.Raw = nil, nil
	return same && a.OccurredAt.Equal(b.OccurredAt) && a.Identity() == b.Identity() && a.Type == b.Type &&
		a.TopicID == b.TopicID && a.Partition == b.Partition && a.Offset == b.Offset && a.Traceparent == b.Traceparent
}

func TestABatchWithoutRowsStillWritesTheCheckpoint(t *testing.T) {
	db, _ := migrated(t)
	epoch := claim(t, db, "a").Epoch
	if _, err := db.Write(t.Context(), group, nil, []pg.Position{position(epoch, 7)}); err != nil {
		t.Fatal(err)
	}
	expectStored(t, db, 0, 7)
}

func TestPG21DuplicatesInsideABatchAreOneRow(t *testing.T) {
	db, _ := migrated(t)
	epoch := claim(t, db, "a").Epoch
	first, again := event(7), event(7)
	again.Offset = 8
	written, err := db.Write(t.Context(), group, []pg.Row{first, again}, []pg.Position{position(epoch, 9)})
	if err != nil || written != 1 {
		t.Fatalf("%d written, %v", written, err)
	}
	expectStored(t, db, 1, 9)
}

func TestPG14TheSameEventWithAnotherTimeIsASecondRow(t *testing.T) {
	db, _ := migrated(t)
	raw := `{"specversion":"1.0","id":"1","source":"/s","type":"t"}`
	rows := []pg.Row{row(now, "/s", "1", raw, 0), row(now.Add(time.Hour), "/s", "1", raw, 1)}
	if written, err := db.Write(t.Context(), group, rows, nil); err != nil || written != 2 {
		t.Fatalf("%d written, %v", written, err)
	}
	counts, err := db.Counts(t.Context())
	if err != nil || counts.Events != 2 || counts.Identities != 1 {
		t.Errorf("counts %+v, %v", counts, err)
	}
}

func TestPG23TwoWritersWithTheSameEventsInOppositeOrderDoNotDeadlock(t *testing.T) {
	db, _ := migrated(t)
	forward := events(0, 300)
	backward := make([]pg.Row, len(forward))
	for round := range 20 {
		for i := range forward {
			forward[i] = event(round*300 + i)
			backward[len(backward)-1-i] = forward[i]
		}
		var written [2]int
		var failures [2]error
		var both sync.WaitGroup
		for i, rows := range [][]pg.Row{forward, backward} {
			both.Go(func() { written[i], failures[i] = db.Write(t.Context(), group, rows, nil) })
		}
		both.Wait()
		if err := errors.Join(failures[:]...); err != nil || written[0]+written[1] != 300 {
			t.Fatalf("round %d: %v written, %v", round, written, err)
		}
	}
}

func TestPG28ABatchIsNotBoundByTheNumberOfParameters(t *testing.T) {
	db, _ := migrated(t)
	if written, err := db.Write(t.Context(), group, events(0, 22_000), nil); err != nil || written != 22_000 {
		t.Fatalf("%d written, %v", written, err)
	}
}

func TestABatchLargerThanOneStatementIsStillOneTransaction(t *testing.T) {
	db, _ := migrated(t)
	epoch := claim(t, db, "a").Epoch
	noise := rand.New(rand.NewPCG(1, 2))
	large := func(n int) pg.Row {
		text := make([]byte, 6<<20)
		for i := range text {
			text[i] = 'a' + byte(noise.IntN(26))
		}
		r := event(n)
		r.Raw = bytes.Replace(r.Raw, []byte(`{"n"`), append(append([]byte(`{"x":"`), text...), `","n"`...), 1)
		return r
	}
	rows := []pg.Row{large(0), large(1), large(2), large(3)}
	if sizes := pg.Statements(rows); !slices.Equal(sizes, []int{2, 2}) {
		t.Errorf("rows of 6 MiB in statements of %v", sizes)
	}
	bad := event(4)
	bad.Raw = []byte(`{"specversion":"1.0","id":"x","source":"/s","type":"t","data":"\u0000"}`)
	_, err := db.Write(t.Context(), group, append(rows, bad), []pg.Position{position(epoch, 5)})
	expectState(t, err, "22P05", "")
	expectStored(t, db, 0, -1)
	if written, err := db.Write(t.Context(), group, rows, []pg.Position{position(epoch, 4)}); err != nil || written != 4 {
		t.Fatalf("%d written, %v", written, err)
	}
	expectStored(t, db, 4, 4)
}

func TestPG26AColumnThatChangesItsTypeMeanwhileCostsNoBatch(t *testing.T) {
	db, url := migrated(t)
	epoch := claim(t, db, "a").Epoch
	for n := range 3 {
		if _, err := db.Write(t.Context(), group, events(n, n+1), []pg.Position{position(epoch, int64(n+1))}); err != nil {
			t.Fatal(err)
		}
		claim := [16]byte{0: byte(n)}
		if _, err := db.Claim(t.Context(), "other", "topic", claim, 0, "a"); err != nil {
			t.Fatal(err)
		}
		exec(t, url, []string{
			"ALTER TABLE events.cloud_event ALTER COLUMN traceparent TYPE varchar(200)",
			"ALTER TABLE events.consumer_checkpoint ALTER COLUMN owner TYPE varchar(200)",
			"ALTER TABLE events.consumer_checkpoint ALTER COLUMN next_offset TYPE numeric",
		}[n])
	}
	if _, err := db.Write(t.Context(), group, events(3, 4), []pg.Position{position(epoch, 4)}); err != nil {
		t.Fatal(err)
	}
}
