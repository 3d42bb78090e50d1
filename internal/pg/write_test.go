package pg_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"appliance/internal/pg"
)

// exec runs a statement on a connection of the test's own, as an operator or another program would.
func exec(t testing.TB, url, statement string, args ...any) {
	t.Helper()
	conn := connect(t, url)
	if _, err := conn.Exec(t.Context(), statement, args...); err != nil {
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

func TestPG20ACheckpointNeverGoesBack(t *testing.T) {
	db, _ := migrated(t)
	epoch := claim(t, db, "a").Epoch
	for _, next := range []int64{100, 50, 100} {
		if _, err := db.Write(t.Context(), group, nil, []pg.Position{position(epoch, next)}); err != nil {
			t.Fatalf("next %d: %v", next, err)
		}
		expectStored(t, db, 0, 100)
	}
	_, err := db.Write(t.Context(), group, events(0, 3), []pg.Position{position(epoch-1, 200)})
	if !errors.Is(err, pg.ErrFenced) {
		t.Fatalf("a wrong epoch gave %v", err)
	}
	expectStored(t, db, 0, 100)
}

func TestPG19APartitionNamedTwiceIsCollapsedToItsHighestOffset(t *testing.T) {
	db, _ := migrated(t)
	epoch := claim(t, db, "a").Epoch
	positions := []pg.Position{position(epoch, 6), position(epoch, 7), position(epoch, 5)}
	if _, err := db.Write(t.Context(), group, events(5, 7), positions); err != nil {
		t.Fatal(err)
	}
	expectStored(t, db, 2, 7)
}

func TestAWriterWhoseClaimWasTakenIsFencedAsAWhole(t *testing.T) {
	db, _ := migrated(t)
	late := claim(t, db, "late")
	if late.Found || late.Epoch != 1 {
		t.Fatalf("first claim %+v", late)
	}
	if _, err := db.Write(t.Context(), group, events(0, 2), []pg.Position{position(late.Epoch, 2)}); err != nil {
		t.Fatal(err)
	}
	rightful := claim(t, db, "rightful")
	if !rightful.Found || rightful.Next != 2 || rightful.Epoch != 2 {
		t.Fatalf("second claim %+v", rightful)
	}
	other := position(late.Epoch, 9)
	other.Partition = 1
	if _, err := db.Claim(t.Context(), group, "topic", topicID, 1, "late"); err != nil {
		t.Fatal(err)
	}
	_, err := db.Write(t.Context(), group, events(2, 4), []pg.Position{other, position(late.Epoch, 4)})
	if !errors.Is(err, pg.ErrFenced) {
		t.Fatalf("the late writer got %v", err)
	}
	points, err := db.Checkpoints(t.Context(), group)
	if err != nil {
		t.Fatal(err)
	}
	if points[0].Next != 2 || points[0].Owner != "rightful" || points[1].Found {
		t.Errorf("a fenced batch moved a checkpoint: %+v", points)
	}
	if n, _ := db.Counts(t.Context()); n.Events != 2 {
		t.Errorf("%d rows, want 2", n.Events)
	}
	if _, err := db.Write(t.Context(), group, events(2, 4), []pg.Position{position(rightful.Epoch, 4)}); err != nil {
		t.Errorf("the rightful owner got %v", err)
	}
}

func TestAClaimBehindAnOpenTransactionCanBeCancelled(t *testing.T) {
	db, url := migrated(t)
	claim(t, db, "zombie")
	zombie := connect(t, url)
	tx, err := zombie.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "UPDATE events.consumer_checkpoint SET next_offset = 3"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	refused := make(chan error, 1)
	go func() {
		_, err := db.Claim(ctx, group, "topic", topicID, 0, "rightful")
		refused <- err
	}()
	watcher := connect(t, url)
	awaitWaiters(t, watcher, 1)
	cancel()
	if err := <-refused; !errors.Is(err, context.Canceled) {
		t.Fatalf("the cancelled claim got %v", err)
	}
	awaitWaiters(t, watcher, 0)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := claim(t, db, "rightful"); c.Epoch != 2 {
		t.Errorf("the cancelled claim took effect: epoch %d, want 2", c.Epoch)
	}
}

// awaitWaiters returns when n sessions of this database wait for a lock.
func awaitWaiters(t *testing.T, conn *pgx.Conn, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for waiting := -1; waiting != n; {
		err := conn.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		if err != nil {
			t.Fatalf("await %d waiting: %v", n, err)
		}
	}
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

func TestTwoWritersOfManyPartitionsTakeTheCheckpointsInOneOrder(t *testing.T) {
	db, _ := migrated(t)
	var forward, backward []pg.Position
	for p := range int32(12) {
		c, err := db.Claim(t.Context(), group, "topic", topicID, p, "a")
		if err != nil {
			t.Fatal(err)
		}
		forward = append(forward, pg.Position{Topic: "topic", TopicID: topicID, Partition: p, Epoch: c.Epoch, Next: 1})
		backward = append([]pg.Position{forward[p]}, backward...)
	}
	var both sync.WaitGroup
	failures := make(chan error, 200)
	for range 100 {
		for _, positions := range [][]pg.Position{forward, backward} {
			both.Go(func() {
				_, err := db.Write(t.Context(), group, nil, positions)
				failures <- err
			})
		}
	}
	both.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			t.Fatal(err)
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

func TestAWriteThatIsCancelledSaysSo(t *testing.T) {
	db, url := migrated(t)
	epoch := claim(t, db, "a").Epoch
	locker := connect(t, url)
	tx, err := locker.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), "LOCK TABLE events.consumer_checkpoint"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := db.Write(ctx, group, events(0, 1), []pg.Position{position(epoch, 1)})
		result <- err
	}()
	awaitWaiters(t, connect(t, url), 1)
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}
