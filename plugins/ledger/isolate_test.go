package ledger

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
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
