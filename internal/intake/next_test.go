package intake

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func at(ms int) time.Time { return time.UnixMilli(int64(ms)) }

func TestNext(t *testing.T) {
	rule := Rule{Lanes: 2, Size: 500, MaxSize: 5000, Window: 250 * time.Millisecond}
	q := func(p int32, waiting, oldest int) Queue {
		return Queue{TP: TP{"t", p}, Waiting: waiting, Oldest: at(oldest)}
	}
	for name, tc := range map[string]struct {
		queues []Queue
		out    int
		now    int
		want   []Cut
		wait   time.Duration
	}{
		"nothing waits":                              {[]Queue{q(0, 0, 0)}, 0, 10, nil, 0},
		"all lanes are out":                          {[]Queue{q(0, 900, 0)}, 2, 1000, nil, 0},
		"a few records wait for the window":          {[]Queue{q(0, 3, 100)}, 0, 150, nil, 200 * time.Millisecond},
		"the window has passed":                      {[]Queue{q(0, 3, 100)}, 0, 350, []Cut{{TP{"t", 0}, 3}}, 0},
		"a full batch does not wait":                 {[]Queue{q(0, 500, 100)}, 0, 100, []Cut{{TP{"t", 0}, 500}}, 0},
		"backlog lets a batch grow":                  {[]Queue{q(0, 4000, 100)}, 0, 100, []Cut{{TP{"t", 0}, 4000}}, 0},
		"and growth ends at the maximum":             {[]Queue{q(0, 9000, 100)}, 0, 100, []Cut{{TP{"t", 0}, 5000}}, 0},
		"half of the partitions for each of 2 lanes": {[]Queue{q(0, 300, 3), q(1, 300, 1), q(2, 300, 2), q(3, 300, 4)}, 0, 500, []Cut{{TP{"t", 1}, 300}, {TP{"t", 2}, 300}}, 0},
		"a busy partition is not handed out again":   {[]Queue{{TP: TP{"t", 0}, Waiting: 900, Busy: true}, q(1, 600, 9)}, 1, 500, []Cut{{TP{"t", 1}, 600}}, 0},
		"a held one neither":                         {[]Queue{{TP: TP{"t", 0}, Waiting: 900, Held: true}}, 0, 500, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, wait := rule.Next(tc.queues, tc.out, at(tc.now))
			if len(got) != len(tc.want) || wait != tc.wait {
				t.Fatalf("got %v after %v, want %v after %v", got, wait, tc.want, tc.wait)
			}
			for i := range got {
				if got[i] != tc.want[i] {
					t.Fatalf("got %v, want %v", got, tc.want)
				}
			}
		})
	}
}

// Whatever the state: never a busy or held partition, never one twice, never more than there is or than a batch may hold,
// and nothing waits for ever while a lane is free.
func TestNextKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := Rule{
			Lanes: rapid.IntRange(1, 8).Draw(t, "lanes"), Size: rapid.IntRange(1, 100).Draw(t, "size"),
			MaxSize: rapid.IntRange(0, 1000).Draw(t, "max"), Window: time.Duration(rapid.IntRange(0, 500).Draw(t, "window")) * time.Millisecond,
		}
		queues := make([]Queue, rapid.IntRange(0, 30).Draw(t, "partitions"))
		free := 0
		for i := range queues {
			queues[i] = Queue{
				TP: TP{"t", int32(i)}, Waiting: rapid.IntRange(0, 300).Draw(t, "waiting"), Oldest: at(rapid.IntRange(0, 1000).Draw(t, "oldest")),
				Busy: rapid.Bool().Draw(t, "busy"), Held: rapid.Bool().Draw(t, "held"),
			}
			if !queues[i].Busy && !queues[i].Held && queues[i].Waiting > 0 {
				free++
			}
		}
		out := rapid.IntRange(0, rule.Lanes).Draw(t, "out")
		cuts, wait := rule.Next(queues, out, at(1000))
		total, last := 0, int32(-1)
		for _, c := range cuts {
			q := queues[c.Partition]
			if q.Busy || q.Held || c.N < 1 || c.N > q.Waiting || c.Partition <= last {
				t.Fatalf("bad cut %v of %+v", c, q)
			}
			total, last = total+c.N, c.Partition
		}
		switch {
		case total > max(rule.Size, rule.MaxSize), len(cuts) > (len(queues)+rule.Lanes-1)/rule.Lanes:
			t.Fatalf("too much: %v", cuts)
		case out == rule.Lanes && len(cuts) > 0:
			t.Fatal("more batches than lanes")
		case out < rule.Lanes && free > 0 && len(cuts) == 0 && wait <= 0:
			t.Fatal("records wait, a lane is free, and nothing will happen")
		}
	})
}
