package generate

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"appliance/internal/event"
)

var at = time.Date(2026, 11, 30, 23, 59, 59, 987654321, time.UTC)

func generator(t testing.TB, o Options) *Generator {
	t.Helper()
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGoodLinesAreEventsOfTheLastHours(t *testing.T) {
	const total = 20_000
	g := generator(t, Options{Seed: 7, Now: at, Total: total})
	ids, size := make(map[string]bool, total), 0
	types := map[string]int{}
	for n := range total {
		line := g.Line(n)
		e, fault := event.DecodeJSON(line.Raw)
		if fault != nil {
			t.Fatalf("line %d: %v: %s", n, fault, line.Raw)
		}
		if e.ID != line.ID || ids[e.ID] {
			t.Fatalf("line %d: id %q, said to be %q, seen before: %t", n, e.ID, line.ID, ids[e.ID])
		}
		ids[e.ID] = true
		if e.OccurredAt.After(at) || e.OccurredAt.Before(at.Add(-reach-5*time.Second)) {
			t.Fatalf("line %d: time %v, now %v", n, e.OccurredAt, at)
		}
		if bytes.ContainsRune(line.Raw, '\n') || line.Poison != "" {
			t.Fatalf("line %d: %q, poison %q", n, line.Raw, line.Poison)
		}
		size += len(line.Raw)
		types[e.Type]++
	}
	if mean := size / total; mean < 475 || mean > 505 {
		t.Errorf("lines have %d bytes on the average, want about 490", mean)
	}
	if len(types) != len(Types()) {
		t.Errorf("made %v of %v", types, Types())
	}
}

func TestTheEventsReachBackFromNow(t *testing.T) {
	for _, c := range []struct {
		name  string
		total int
		back  time.Duration
	}{
		{"at the pace of a stream", 1001, 137 * time.Second},
		{"and no further than a day", 10_000_000, 24 * time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := generator(t, Options{Seed: 1, Now: at, Total: c.total})
			for n, back := range map[int]time.Duration{0: c.back, c.total - 1: 0} {
				e, fault := event.DecodeJSON(g.Line(n).Raw)
				if fault != nil {
					t.Fatal(fault)
				}
				if late := at.Add(-back).Sub(e.OccurredAt); late < -10*time.Millisecond || late > 6*time.Second {
					t.Errorf("line %d is of %v, want %v or a few seconds before", n, e.OccurredAt, at.Add(-back))
				}
			}
		})
	}
}

func TestTheSameOptionsGiveTheSameBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{
			Seed: rapid.Uint64().Draw(t, "seed"), Now: at, Total: rapid.IntRange(0, 1_000_000_000).Draw(t, "total"),
			Poison: rapid.Float64Range(0, 1).Draw(t, "poison"),
		}
		n := rapid.IntRange(0, 1_000_000_000).Draw(t, "n")
		one, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		other, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := one.Line(n), other.Line(n); !bytes.Equal(a.Raw, b.Raw) || a.ID != b.ID {
			t.Fatalf("%s\n%s", a.Raw, b.Raw)
		}
	})
}

func TestAnotherSeedGivesOtherIDs(t *testing.T) {
	one, other := generator(t, Options{Seed: 1, Now: at, Total: 10}), generator(t, Options{Seed: 2, Now: at, Total: 10})
	for n := range 10 {
		if one.Line(n).ID == other.Line(n).ID {
			t.Errorf("line %d has the id %s under both seeds", n, one.Line(n).ID)
		}
	}
}

func TestPoisonIsTheStatedShareAndIsRefusedForTheStatedReason(t *testing.T) {
	const total, want = 100_000, 500
	g := generator(t, Options{Seed: 3, Now: at, Total: total, Poison: 0.005})
	reasons := map[string]int{}
	for n := range total {
		line := g.Line(n)
		e, fault := event.DecodeJSON(line.Raw)
		if fault == nil && e.OccurredAt.Before(at.AddDate(0, -13, 0)) { // the decoder leaves this one to the database
			fault = event.NewFault(event.ReasonOutsidePartitions, "time", e.Time)
		}
		switch {
		case line.Poison == "" && fault != nil:
			t.Fatalf("line %d is said to be good: %v", n, fault)
		case line.Poison == "":
		case fault == nil:
			t.Fatalf("line %d is said to be %s and is good: %s", n, line.Poison, line.Raw)
		case fault.Reason != line.Poison || !strings.Contains(string(line.Raw), line.ID):
			t.Fatalf("line %d: %v, said to be %s: %s", n, fault, line.Poison, line.Raw)
		default:
			reasons[line.Poison]++
		}
	}
	if len(reasons) != 5 {
		t.Errorf("%v, want five kinds", reasons)
	}
	for reason, n := range reasons {
		if n != want/5 {
			t.Errorf("%s occurs %d times, want %d", reason, n, want/5)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"a share above one", Options{Poison: 1.1}, "share from 0 to 1"},
		{"a negative share", Options{Poison: -0.1}, "share from 0 to 1"},
		{"a type that it doesn't know, naming those it does", Options{Types: []string{"x"}}, "com.example.order.placed.v1"},
		{"a negative number", Options{Total: -1}, "-1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := New(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestTypesRestrictsWhatIsMade(t *testing.T) {
	g := generator(t, Options{Seed: 1, Now: at, Total: 100, Types: []string{"com.example.order.placed.v1"}})
	for n := range 100 {
		if e, fault := event.DecodeJSON(g.Line(n).Raw); fault != nil || e.Type != "com.example.order.placed.v1" {
			t.Fatalf("line %d: %v %v", n, e, fault)
		}
	}
}

func BenchmarkLine(b *testing.B) {
	g := generator(b, Options{Seed: 1, Now: at, Total: 1_000_000})
	for n := 0; b.Loop(); n++ {
		g.Line(n)
	}
}
