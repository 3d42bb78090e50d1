package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"appliance/internal/event"
	"appliance/internal/intake"
	"appliance/internal/pg"
)

// poison makes the record's event one that the decoder let pass and the database refuses.
func poison(m *message, raw string) {
	e := *m.carrier.Event
	e.Raw = []byte(raw)
	m.carrier.Event, m.bytes = &e, e.Raw
}

func nul(id string) string {
	return strings.Replace(eventJSON(id), `{"n":1}`, `"a\u0000b"`, 1)
}

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

func TestPG32PoisonAmongFiveHundredIsFoundByHalving(t *testing.T) {
	b := newBench(t, "")
	messages := decoded(batchOf(500, 0))
	var want []string
	for _, i := range []int{0, 250, 251, 499} {
		poison(&messages[i], nul(fmt.Sprintf("0-%d", i)))
		want = append(want, fmt.Sprintf("0/%d:unpersistable", 100+i))
	}
	if err := b.write(messages); err != nil {
		t.Fatal(err)
	}
	b.expect(496, 600, want...)
	if b.tries > 70 || b.writes != 2 {
		t.Errorf("%d probes and %d writes: halving takes about 47 probes, and 2 writes", b.tries, b.writes)
	}
	l := b.published[0][1]
	if !strings.HasPrefix(l.Detail, "SQLSTATE 22P05: ") || string(l.Record.Value) != eventJSON("0-250") || l.Event.ID != "0-250" ||
		l.Pipeline != "persist" || !l.At.Equal(at) {
		t.Errorf("letter %+v", l)
	}
	if b.counts["poison unpersistable"] != 4 || b.counts["persisted t"] != 496 || b.counts["duplicate"] != 0 {
		t.Errorf("counted %v", b.counts)
	}
}

func TestABatchOfPoisonAloneStillWritesItsCheckpoint(t *testing.T) {
	b := newBench(t, "")
	messages := decoded(batchOf(2, 0))
	for i := range messages {
		poison(&messages[i], nul("x"))
	}
	if err := b.write(messages); err != nil {
		t.Fatal(err)
	}
	b.expect(0, 102, "0/100:unpersistable", "0/101:unpersistable")
}

func TestWhatOnlyTheDatabaseRefusesIsADeadLetter(t *testing.T) {
	noise := rand.New(rand.NewPCG(1, 2))
	long := make([]byte, 2700)
	for i := range long {
		long[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"[noise.IntN(62)]
	}
	for _, c := range []struct{ name, raw, state string }{
		{"PG-01 a NUL escape", nul("x"), "22P05"},
		{"PG-04 a lone surrogate", strings.Replace(eventJSON("x"), `{"n":1}`, `"\ud83d"`, 1), "22P02"},
		{"PG-05 a byte that is no UTF-8", strings.Replace(eventJSON("x"), `{"n":1}`, "\"\xff\"", 1), "22021"},
		{"PG-07 an id of random letters longer than an index entry", eventJSON(string(long)), "54000"},
		{"PG-11 no specversion", `{"id":"x","source":"/s","type":"t"}`, "23502"},
		{"another specversion", `{"specversion":"0.3","id":"x","source":"/s","type":"t"}`, "23514"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, "")
			messages := decoded(batchOf(3, 0))
			poison(&messages[1], c.raw)
			if err := b.write(messages); err != nil {
				t.Fatal(err)
			}
			b.expect(2, 103, "0/101:unpersistable")
			if got := b.published[0][0].Detail; !strings.HasPrefix(got, "SQLSTATE "+c.state+": ") {
				t.Errorf("detail %q", got)
			}
		})
	}
}

func TestAGoodCopyOfAPoisonedEventIsStored(t *testing.T) {
	b := newBench(t, "")
	messages := decoded(batchOf(2, 0))
	second := *messages[0].carrier.Event
	messages[1].carrier.Event, messages[1].bytes = &second, second.Raw
	poison(&messages[0], nul("0-0"))
	if err := b.write(messages); err != nil {
		t.Fatal(err)
	}
	b.expect(1, 102, "0/100:unpersistable")
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

func TestATimeOfNoPartition(t *testing.T) {
	month := func(n int) time.Time { return time.Date(2026, 11+time.Month(n), 3, 0, 0, 0, 0, time.UTC) }
	set := func(m *message, when time.Time) {
		e := *m.carrier.Event
		e.OccurredAt = when
		m.carrier.Event = &e
	}
	t.Run("outside the maintained months it is the record's fault", func(t *testing.T) {
		b := newBench(t, "")
		messages := decoded(batchOf(4, 0))
		set(&messages[0], month(4))
		set(&messages[2], month(-14))
		set(&messages[3], month(-13))
		if err := b.write(messages); err != nil {
			t.Fatal(err)
		}
		b.expect(2, 104, "0/100:outside-partitions", "0/102:outside-partitions")
	})
	t.Run("inside them the partition is made", func(t *testing.T) {
		b := newBench(t, "")
		messages := decoded(batchOf(3, 0))
		set(&messages[1], month(3))
		if err := b.write(messages); err != nil || b.tries != 0 {
			t.Fatalf("%v, %d probes", err, b.tries)
		}
		b.expect(3, 103)
	})
	t.Run("inside them a partition that cannot be made ends the run", func(t *testing.T) {
		b := newBench(t, "")
		b.exec("CREATE TABLE events.cloud_event_2027_02 ()")
		messages := decoded(batchOf(3, 0))
		set(&messages[1], month(3))
		err := b.write(messages)
		if err == nil || !strings.Contains(err.Error(), "no partition for a maintained month, 2027-02") || !strings.Contains(err.Error(), "42P07") {
			t.Fatalf("got %v", err)
		}
		b.untouched()
		if len(b.published) != 0 || b.run.Cause() == nil {
			t.Errorf("letters %q, cause %v", b.letters(), b.run.Cause())
		}
	})
}

func TestAnOperatorMayDecideAStateOtherwise(t *testing.T) {
	b := newBench(t, `verdicts: { P0001: record, "40001": defect }`)
	b.raise("P0001", "0-1", always)
	if err := b.write(decoded(batchOf(3, 0))); err != nil {
		t.Fatal(err)
	}
	b.expect(2, 103, "0/101:unpersistable")
	b.raise("40001", "1-1", always)
	if err := b.write(decoded(batchOf(3, 1))); err == nil || len(b.delays) != 0 {
		t.Errorf("%v after delays %v", err, b.delays)
	}
}

func TestARefusalThatOnlyATogetherWriteMeetsBlamesNobody(t *testing.T) {
	b := newBench(t, "")
	b.exec(`CREATE FUNCTION public.together() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (SELECT count(*) FROM inserted) > 1 THEN RAISE EXCEPTION 'too many' USING ERRCODE = '54000'; END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER together AFTER INSERT ON events.cloud_event REFERENCING NEW TABLE AS inserted
FOR EACH STATEMENT EXECUTE FUNCTION public.together()`)
	if err := b.write(decoded(batchOf(4, 0))); err == nil || b.run.Cause() == nil {
		t.Fatalf("%v, cause %v", err, b.run.Cause())
	}
	b.untouched()
	if len(b.published) != 0 {
		t.Errorf("letters %q", b.letters())
	}
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
