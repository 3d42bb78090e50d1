package ledger

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"appliance/internal/event"
	"appliance/internal/intake"
	"appliance/internal/pg"
)

func TestAGoodBatchIsRowsAndACheckpoint(t *testing.T) {
	b := newBench(t, "")
	batch := batchOf(50, 0, 1, 2)
	if err := b.write(decoded(batch)); err != nil {
		t.Fatal(err)
	}
	b.expect(150, 150)
	if _, next := b.stored(); next[1] != 150 || next[2] != 150 {
		t.Errorf("checkpoints %v", next)
	}
	if !slices.Equal(b.receipts, []*intake.Batch{batch}) || b.run.Cause() != nil {
		t.Errorf("receipts %v, cause %v", b.receipts, b.run.Cause())
	}
	if b.counts["persisted t"] != 150 || b.counts["duplicate"] != 0 || b.counts["success"] != 1 || b.counts["size"] != 150 {
		t.Errorf("counted %v", b.counts)
	}
	// Read again: everything is there already.
	if err := b.write(decoded(batch)); err != nil {
		t.Fatal(err)
	}
	b.expect(150, 150)
	if b.counts["persisted t"] != 300 || b.counts["duplicate"] != 150 {
		t.Errorf("counted %v", b.counts)
	}
}

func TestPG21CopiesInsideABatchAreCountedAsDuplicates(t *testing.T) {
	b := newBench(t, "")
	batch := batchOf(3, 0)
	batch.Spans[0].Records[2].Value = batch.Spans[0].Records[1].Value
	if err := b.write(decoded(batch)); err != nil {
		t.Fatal(err)
	}
	b.expect(2, 103)
	if b.counts["persisted t"] != 3 || b.counts["duplicate"] != 1 {
		t.Errorf("counted %v", b.counts)
	}
}

func TestPG14TheSameEventWithAnotherTimeIsARowAndCounted(t *testing.T) {
	b := newBench(t, "")
	batch := batchOf(4, 0)
	for i, second := range []string{"01", "02", "02", "01"} {
		batch.Spans[0].Records[i].Value = []byte(strings.Replace(eventJSON("same"), ":00Z", ":"+second+"Z", 1))
	}
	if err := b.write(decoded(batch)); err != nil {
		t.Fatal(err)
	}
	b.expect(2, 104)
	if b.counts["duplicate"] != 2 || b.counts["retimed"] != 1 {
		t.Errorf("counted %v", b.counts)
	}
}

func TestPG24AnErrorOfTheMomentBlamesNobody(t *testing.T) {
	for _, state := range []string{"40001", "40P01", "55P03", "57014", "57P01", "57P03", "08006", "53100", "53300", "XX000", "25P02"} {
		t.Run(state, func(t *testing.T) {
			b := newBench(t, "")
			messages := decoded(batchOf(3, 0))
			b.raise(state, "0-1", always)
			if err := b.write(messages); err == nil {
				t.Fatal("it was written")
			}
			b.untouched()
			if !slices.Equal(b.delays, []time.Duration{200 * time.Millisecond, 200 * time.Millisecond}) || b.writes != 3 || b.tries != 0 {
				t.Errorf("PG-35: %d attempts, delays %v, %d probes", b.writes, b.delays, b.tries)
			}
			if code, _, _ := pg.Code(b.run.Cause()); code != state || len(b.published) != 0 {
				t.Errorf("cause %v, letters %q", b.run.Cause(), b.letters())
			}
			// The supervisor starts the next run; meanwhile it is over.
			b.raise(state, "0-1", 2)
			b.start("database: events\ndead_letters: main")
			if err := b.write(messages); err != nil {
				t.Fatal(err)
			}
			b.expect(3, 103)
		})
	}
}

func TestPG26AStalePlanIsTriedAgainAtOnce(t *testing.T) {
	b := newBench(t, "")
	b.raise("0A000", "0-1", 1)
	if err := b.write(decoded(batchOf(3, 0))); err != nil || len(b.delays) != 0 || b.run.Cause() != nil {
		t.Fatalf("%v after delays %v, cause %v", err, b.delays, b.run.Cause())
	}
	b.expect(3, 103)
}

func TestPG31ADefectStallsAtOnceAndBlamesNobody(t *testing.T) {
	for _, c := range []struct{ state, statement string }{
		{"42703", "ALTER TABLE events.cloud_event DROP COLUMN traceparent"},
		{"42P01", "ALTER TABLE events.cloud_event RENAME TO gone"},
		{"42883", "DROP FUNCTION events.advance_checkpoint"},
	} {
		t.Run(c.state, func(t *testing.T) {
			b := newBench(t, "")
			b.exec(c.statement)
			err := b.write(decoded(batchOf(3, 0)))
			if code, _, _ := pg.Code(err); code != c.state || b.run.Cause() == nil {
				t.Fatalf("%v, cause %v", err, b.run.Cause())
			}
			if len(b.delays) != 0 || b.writes != 1 || b.tries != 0 || len(b.published) != 0 || len(b.receipts) != 0 {
				t.Errorf("%d writes, %d probes, delays %v, letters %q", b.writes, b.tries, b.delays, b.letters())
			}
		})
	}
}

func TestALateOwnerIsFencedAndItsRunGoesOn(t *testing.T) {
	b := newBench(t, "")
	batch := batchOf(3, 0)
	epoch := b.claim(0).Epoch
	if err := b.write(decoded(batch)); !errors.Is(err, pg.ErrFenced) || b.run.Cause() != nil || len(b.delays) != 0 {
		t.Fatalf("%v, cause %v, delays %v", err, b.run.Cause(), b.delays)
	}
	b.untouched()
	batch.Spans[0].Epoch = epoch
	if err := b.write(decoded(batch)); err != nil {
		t.Fatal(err)
	}
	b.expect(3, 103)
}

func TestLettersAreDurableBeforeAnyTransactionIsOpen(t *testing.T) {
	b := newBench(t, "")
	messages := decoded(batchOf(4, 0))
	messages[3].failed = errors.New("mapping broke")
	poison(&messages[1], nul("0-1"))
	b.onPublish = func() error {
		rows, next := b.stored()
		open := b.number(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
 AND application_name = 'appliance' AND xact_start IS NOT NULL`)
		if rows != 0 || len(next) != 0 || open != 0 {
			t.Errorf("while publishing: %d rows, checkpoints %v, %d open transactions", rows, next, open)
		}
		return nil
	}
	if err := b.write(messages); err != nil {
		t.Fatal(err)
	}
	b.expect(2, 104, "0/103:processor-failed", "0/101:unpersistable")
}

func TestABatchThatProcessorsDroppedWholeIsDeadLettersAndACheckpoint(t *testing.T) {
	b := newBench(t, "")
	if err := b.out.dropped(t.Context(), batchOf(3, 0)); err != nil {
		t.Fatal(err)
	}
	b.expect(0, 103, "0/100:processor-failed", "0/101:processor-failed", "0/102:processor-failed")
}

func TestNoLetterIsPublishedWhileTheDatabaseIsAway(t *testing.T) {
	b := newBench(t, "")
	messages := decoded(batchOf(4, 0))
	messages[3].failed = errors.New("mapping broke")
	b.db.Close()
	if err := b.write(messages); err == nil {
		t.Fatal("a batch was written into a database that is away")
	}
	if len(b.published) != 0 {
		t.Errorf("%d letters were published: each restart would leave another copy", len(b.published))
	}
	if b.run.Cause() == nil {
		t.Error("the run goes on")
	}
}

func TestABrokerThatRefusesALetterKeepsTheWholeBatch(t *testing.T) {
	for name, spoil := range map[string]func(m *message){
		"a letter of the decoder's":  func(m *message) { m.carrier.Event, m.carrier.Fault = nil, &event.Fault{Reason: "no-time"} },
		"a letter of the database's": func(m *message) { poison(m, nul("0-1")) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "")
			messages := decoded(batchOf(3, 0))
			spoil(&messages[1])
			down := errors.New("broker down")
			b.onPublish = func() error { return down }
			if err := b.write(messages); !errors.Is(err, down) || !errors.Is(b.run.Cause(), down) {
				t.Fatalf("%v, cause %v", err, b.run.Cause())
			}
			b.untouched()
			if b.counts["failure"] != 1 || b.counts["poison no-time"]+b.counts["poison unpersistable"] != 0 {
				t.Errorf("counted %v", b.counts)
			}
		})
	}
}

func TestWithoutDeadLettersARecordThatCannotBeStoredEndsTheRun(t *testing.T) {
	b := newBench(t, "")
	b.start("database: events")
	messages := decoded(batchOf(3, 0))
	messages[1].failed = errors.New("mapping broke")
	err := b.write(messages)
	if !errors.Is(err, ErrNoDeadLetters) || !strings.Contains(err.Error(), "events/0/101: processor-failed: mapping broke") {
		t.Fatalf("got %v", err)
	}
	b.untouched()
}

func TestAStopWhileWaitingIsNoFailureOfTheRun(t *testing.T) {
	b := newBench(t, "")
	b.raise("40001", "0-1", always)
	ctx, cancel := context.WithCancel(t.Context())
	b.onWait = cancel
	err := b.out.WriteBatch(ctx, engineBatch(decoded(batchOf(3, 0))))
	if !errors.Is(err, context.Canceled) || b.run.Cause() != nil || b.writes != 1 {
		t.Errorf("%v, cause %v, %d writes", err, b.run.Cause(), b.writes)
	}
	b.untouched()
}

func TestAMessageOfNoRecordEndsTheRun(t *testing.T) {
	b := newBench(t, "")
	batch := engineBatch(decoded(batchOf(2, 0)))
	batch[1] = batch[1].WithContext(context.Background())
	if err := b.out.WriteBatch(t.Context(), batch); !errors.Is(err, ErrNoCarrier) || !errors.Is(b.run.Cause(), ErrNoCarrier) {
		t.Errorf("%v, cause %v", err, b.run.Cause())
	}
	b.untouched()
}

func TestAPanicEndsTheRunAndNotTheProcess(t *testing.T) {
	b := newBench(t, "")
	b.onPublish = func() error { panic("boom") }
	messages := decoded(batchOf(2, 0))
	messages[0].failed = errors.New("x")
	if err := b.write(messages); err == nil || b.run.Cause() == nil || b.counts["failure"] != 1 {
		t.Errorf("%v, cause %v, counted %v", err, b.run.Cause(), b.counts)
	}
	b.untouched()
}

func TestBatchesThatWereGatheredAreAllSettled(t *testing.T) {
	b := newBench(t, "")
	one, two := batchOf(2, 0), batchOf(2, 1)
	if err := b.write(slices.Concat(decoded(one), decoded(two))); err != nil {
		t.Fatal(err)
	}
	b.expect(4, 102)
	if !slices.Equal(b.receipts, []*intake.Batch{one, two}) {
		t.Errorf("receipts %v", b.receipts)
	}
}
