package deadletter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redpanda-data/benthos/v4/public/service"
	"go.uber.org/goleak"

	"appliance/internal/carrier"
	"appliance/internal/event"
	"appliance/internal/intake"
	"appliance/internal/pg"
	"appliance/internal/run"
	"appliance/internal/testservices"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const group = "test-dlq-index"

// bench is one output before a database of its own.
type bench struct {
	*output
	db    *pg.DB
	sql   *pgx.Conn
	waits int
	// onWait is called instead of waiting.
	onWait   func(n int)
	receipts []*intake.Batch
}

// setup makes a database with the schema; settings are parameters of its connections, as in lock_timeout=100ms.
func setup(t *testing.T, settings string) *bench {
	t.Helper()
	url := testservices.Postgres(t)
	if _, err := pg.Migrate(t.Context(), pg.Config{URL: url}); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if settings != "" {
		name := pgx.Identifier{conn.Config().Database}.Sanitize()
		if _, err := conn.Exec(t.Context(), "ALTER DATABASE "+name+" SET "+settings); err != nil {
			t.Fatal(err)
		}
	}
	db, err := pg.Open(t.Context(), pg.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	b := &bench{db: db, sql: conn, onWait: func(int) {}}
	b.output = b.connected(t)
	return b
}

func (b *bench) deps() Deps {
	return Deps{
		Run: run.New("dlq"), Group: group, Now: now,
		Wait:     func(context.Context, time.Duration) error { b.waits++; b.onWait(b.waits); return nil },
		Database: func(context.Context, string) (Store, error) { return b.db, nil },
		Receipt:  func(batch *intake.Batch) { b.receipts = append(b.receipts, batch) },
	}
}

func (b *bench) connected(t *testing.T) *output {
	t.Helper()
	conf, err := parse(t, "database: events\nattempts: 3")
	if err != nil {
		t.Fatal(err)
	}
	o := newOutput(conf, b.deps())
	if err := o.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return o
}

// batch is a batch of partition 0 under a new claim.
func (b *bench) batch(t *testing.T, rs ...event.Record) *intake.Batch {
	t.Helper()
	claim, err := b.db.Claim(t.Context(), group, dlq, dlqID(), 0, "me")
	if err != nil {
		t.Fatal(err)
	}
	return &intake.Batch{ID: 1, Spans: []intake.Span{{
		TP: intake.TP{Topic: dlq}, TopicID: dlqID(), Epoch: claim.Epoch, First: rs[0].Offset, Next: rs[len(rs)-1].Offset + 1, Records: rs,
	}}}
}

func messagesOf(b *intake.Batch) service.MessageBatch {
	var out service.MessageBatch
	for _, c := range carriersOf(b) {
		out = append(out, service.NewMessage(c.Record().Value).WithContext(carrier.With(context.Background(), c)))
	}
	return out
}

// index lists the rows as ref:reason:readable:parts_have:copies, sorted by ref.
func (b *bench) index(t *testing.T) string {
	t.Helper()
	rows, err := b.sql.Query(t.Context(), `SELECT concat_ws(':', ref, reason, readable, parts_have, copies)
  FROM events.dead_letter ORDER BY ref`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// checkpoint is the stored next offset of partition 0, -1 where none is.
func (b *bench) checkpoint(t *testing.T) int64 {
	t.Helper()
	all, err := b.db.Checkpoints(t.Context(), group)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 1 && all[0].Found {
		return all[0].Next
	}
	return -1
}

func TestABatchIsIndexedWithItsCheckpoint(t *testing.T) {
	b := setup(t, "")
	l := letter(7)
	l.Record.Value = make([]byte, 20_000)
	l.Record.Value[0] = 0xFF
	rs := append(records(t, letter(5), 1<<20, 0), record(1, []byte("foreign\x00\xff")))
	rs = append(rs, records(t, l, 16_000, 2)...)
	batch := b.batch(t, rs...)
	if err := b.WriteBatch(t.Context(), messagesOf(batch)); err != nil {
		t.Fatal(err)
	}
	const want = "events.cloudevents.v1.dlq/0/1::f:{1}:1 events.cloudevents.v1/3/5:bad-attribute:t:{1}:1 " +
		"events.cloudevents.v1/3/7:bad-attribute:t:{1,2,3}:1"
	if got := b.index(t); got != want {
		t.Errorf("index %s\nwant  %s", got, want)
	}
	if got := b.checkpoint(t); got != 5 || len(b.receipts) != 1 || b.receipts[0] != batch {
		t.Errorf("checkpoint %d, %d receipts", got, len(b.receipts))
	}
}

func TestReadingABatchAgainChangesNothing(t *testing.T) {
	b := setup(t, "")
	rs := append(records(t, letter(5), 1<<20, 0), record(1, nil))
	for range 2 {
		if err := b.WriteBatch(t.Context(), messagesOf(b.batch(t, rs...))); err != nil {
			t.Fatal(err)
		}
	}
	const want = "events.cloudevents.v1.dlq/0/1::f:{1}:1 events.cloudevents.v1/3/5:bad-attribute:t:{1}:1"
	if got := b.index(t); got != want {
		t.Errorf("index %s\nwant  %s", got, want)
	}
}

func TestTheCheckpointCoversRecordsWhoseMessagesWereDropped(t *testing.T) {
	b := setup(t, "")
	rs := append(records(t, letter(5), 1<<20, 0), records(t, letter(6), 1<<20, 1)...)
	if err := b.WriteBatch(t.Context(), messagesOf(b.batch(t, rs...))[:1]); err != nil {
		t.Fatal(err)
	}
	if got := b.index(t); got != "events.cloudevents.v1/3/5:bad-attribute:t:{1}:1" || b.checkpoint(t) != 2 {
		t.Errorf("index %s, checkpoint %d", got, b.checkpoint(t))
	}
}

func TestAFencedWriterStoresNothingAndItsRunGoesOn(t *testing.T) {
	b := setup(t, "")
	late := b.batch(t, records(t, letter(5), 1<<20, 0)...)
	b.batch(t, record(0, nil)) // another owner's claim
	err := b.WriteBatch(t.Context(), messagesOf(late))
	if !errors.Is(err, pg.ErrFenced) || b.output.deps.Run.Cause() != nil || b.waits != 0 || len(b.receipts) != 0 {
		t.Errorf("WriteBatch: %v, cause %v, %d waits", err, b.output.deps.Run.Cause(), b.waits)
	}
	if got := b.index(t); got != "" || b.checkpoint(t) != -1 {
		t.Errorf("index %s, checkpoint %d", got, b.checkpoint(t))
	}
}

// locked holds the index's table until it is told to let go, so that writers meet 55P03.
func (b *bench) locked(t *testing.T) (release func()) {
	t.Helper()
	tx, err := b.sql.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "LOCK TABLE events.dead_letter IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(func() {
		if err := tx.Rollback(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func TestAnErrorOfTheMomentIsTriedAgain(t *testing.T) {
	b := setup(t, "lock_timeout = '50ms'")
	batch := b.batch(t, records(t, letter(5), 1<<20, 0)...)
	release := b.locked(t)
	b.onWait = func(n int) {
		if n == 2 {
			release()
		}
	}
	if err := b.WriteBatch(t.Context(), messagesOf(batch)); err != nil || b.waits != 2 || b.output.deps.Run.Cause() != nil {
		t.Errorf("WriteBatch: %v after %d waits, cause %v", err, b.waits, b.output.deps.Run.Cause())
	}
	if got := b.index(t); got != "events.cloudevents.v1/3/5:bad-attribute:t:{1}:1" {
		t.Errorf("index %s", got)
	}
}

func TestAnErrorThatStaysEndsTheRunAfterTheAttempts(t *testing.T) {
	b := setup(t, "lock_timeout = '50ms'")
	batch := b.batch(t, records(t, letter(5), 1<<20, 0)...)
	release := b.locked(t)
	err := b.WriteBatch(t.Context(), messagesOf(batch))
	release()
	if code, _, _ := pg.Code(err); code != "55P03" || b.waits != 2 || !errors.Is(b.output.deps.Run.Cause(), err) || len(b.receipts) != 0 {
		t.Errorf("WriteBatch: %v after %d waits, cause %v", err, b.waits, b.output.deps.Run.Cause())
	}
	if !strings.Contains(fmt.Sprint(err), "attempt 3 of 3") || b.checkpoint(t) != -1 {
		t.Errorf("error %v, checkpoint %d", err, b.checkpoint(t))
	}
}

func TestADefectEndsTheRunAtOnce(t *testing.T) { // PG-31
	b := setup(t, "")
	batch := b.batch(t, records(t, letter(5), 1<<20, 0)...)
	if _, err := b.sql.Exec(t.Context(), "ALTER TABLE events.dead_letter DROP COLUMN fingerprint"); err != nil {
		t.Fatal(err)
	}
	err := b.WriteBatch(t.Context(), messagesOf(batch))
	if code, _, _ := pg.Code(err); code != "42703" || b.waits != 0 || !errors.Is(b.output.deps.Run.Cause(), err) {
		t.Errorf("WriteBatch: %v after %d waits, cause %v", err, b.waits, b.output.deps.Run.Cause())
	}
	if b.checkpoint(t) != -1 {
		t.Errorf("checkpoint %d", b.checkpoint(t))
	}
}

func TestAStoppedWriterIsNoFailure(t *testing.T) {
	b := setup(t, "")
	batch := b.batch(t, records(t, letter(5), 1<<20, 0)...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.WriteBatch(ctx, messagesOf(batch)); !errors.Is(err, context.Canceled) || b.output.deps.Run.Cause() != nil {
		t.Errorf("WriteBatch: %v, cause %v", err, b.output.deps.Run.Cause())
	}
}

func TestAMessageWithoutARecordEndsTheRun(t *testing.T) {
	o := newOutput(Config{}, Deps{Run: run.New("dlq"), Now: now})
	err := o.WriteBatch(t.Context(), service.MessageBatch{service.NewMessage([]byte("x"))})
	if !errors.Is(err, ErrNoCarrier) || !errors.Is(o.deps.Run.Cause(), ErrNoCarrier) {
		t.Errorf("WriteBatch: %v, cause %v", err, o.deps.Run.Cause())
	}
}

func TestAPanicEndsTheRunAndNotTheProcess(t *testing.T) {
	o := newOutput(Config{}, Deps{Run: run.New("dlq"), Now: func() time.Time { panic("no clock") }})
	if err := o.WriteBatch(t.Context(), nil); err == nil || o.deps.Run.Cause() == nil {
		t.Errorf("WriteBatch: %v, cause %v", err, o.deps.Run.Cause())
	}
}

func TestConnectWithoutADatabaseEndsTheRun(t *testing.T) {
	down := errors.New("down")
	o := newOutput(Config{Database: "events"}, Deps{
		Run:      run.New("dlq"),
		Database: func(context.Context, string) (Store, error) { return nil, down },
	})
	if err := o.Connect(t.Context()); !errors.Is(err, ErrConnect) || !errors.Is(err, down) || !errors.Is(o.deps.Run.Cause(), down) {
		t.Errorf("Connect: %v, cause %v", err, o.deps.Run.Cause())
	}
	if err := o.Connect(t.Context()); !errors.Is(err, down) {
		t.Errorf("Connect of a run that ended: %v", err)
	}
}
