package deadletter_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"appliance/internal/deadletter"
	"appliance/internal/event"
)

const owned = "events.cloudevents.v1"

func bounds() deadletter.Bounds { return deadletter.Bounds{Topics: []string{owned}, MaxAttempts: 3} }

// entry is what a listing makes of a letter.
func entry(l deadletter.Letter) deadletter.Entry {
	return deadletter.Entry{Ref: l.Ref(), Letter: &l, Copies: 1, Parts: 1}
}

func withAttempt(values ...string) deadletter.Letter {
	l := poison()
	for _, v := range values {
		l.Record.Headers = append(l.Record.Headers, event.Header{Key: deadletter.HeaderAttempt, Value: []byte(v)})
	}
	return l
}

func TestWhatThePlanSkips(t *testing.T) {
	from := func(topic string) deadletter.Letter {
		l := poison()
		l.Record.Topic = topic
		return l
	}
	for name, tc := range map[string]struct {
		entry deadletter.Entry
		want  deadletter.SkipReason // "" where it is replayed
	}{
		"a letter":                           {entry(poison()), ""},
		"a record that is no letter":         {deadletter.Entry{Ref: dlq + "/0/1", Problem: "not a CloudEvent"}, deadletter.SkipUndecodable},
		"a letter of another topic":          {entry(from("payments")), deadletter.SkipForeignTopic}, // DL-06
		"a letter of the dead-letter topic":  {entry(from(dlq)), deadletter.SkipForeignTopic},
		"a topic that merely begins as ours": {entry(from(owned + ".dlq")), deadletter.SkipForeignTopic},
		"one replayed twice of three times":  {entry(withAttempt("2")), ""},
		"one replayed as often as may be":    {entry(withAttempt("3")), deadletter.SkipBudgetExhausted},
		"one replayed more often":            {entry(withAttempt("4")), deadletter.SkipBudgetExhausted},
		"an attempt that is no number":       {entry(withAttempt("two")), deadletter.SkipBudgetExhausted},
		"an attempt that is empty":           {entry(withAttempt("")), deadletter.SkipBudgetExhausted},
		"an attempt below zero":              {entry(withAttempt("-1")), deadletter.SkipBudgetExhausted},
		"two attempts, the higher too many":  {entry(withAttempt("3", "1")), deadletter.SkipBudgetExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			got := deadletter.Plan([]deadletter.Entry{tc.entry}, bounds())
			if tc.want == "" {
				if len(got.Publish) != 1 || len(got.Skipped) != 0 || got.Publish[0].Ref != tc.entry.Ref {
					t.Errorf("%+v", got)
				}
				return
			}
			if len(got.Publish) != 0 || len(got.Skipped) != 1 || got.Skipped[0].Reason != tc.want || got.Skipped[0].Ref != tc.entry.Ref || got.Skipped[0].Detail == "" {
				t.Errorf("%+v, want %s", got, tc.want)
			}
		})
	}
}

// DL-05: the record is the same but for two headers, which take the place of such as it had.
func TestAReplayIsACopyButForTwoHeaders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := anyLetter().Draw(t, "letter")
		var kept []event.Header
		for i, h := range l.Record.Headers {
			switch h.Key {
			case deadletter.HeaderAttempt:
				l.Record.Headers[i].Value = []byte("1")
			case deadletter.HeaderReplayOf:
			default:
				kept = append(kept, h)
			}
		}
		got := deadletter.Plan([]deadletter.Entry{entry(l)}, deadletter.Bounds{Topics: []string{l.Record.Topic}, MaxAttempts: 3})
		if len(got.Publish) != 1 {
			t.Fatalf("%+v", got)
		}
		again := l
		again.Record.Key, again.Record.Value = got.Publish[0].Record.Key, got.Publish[0].Record.Value
		n := len(got.Publish[0].Record.Headers) - 2
		again.Record.Headers = got.Publish[0].Record.Headers[:n]
		l.Record.Headers = kept
		if d := difference(l, again); d != "" {
			t.Fatalf("%s differs", d)
		}
		attempt, of := got.Publish[0].Record.Headers[n], got.Publish[0].Record.Headers[n+1]
		if attempt.Key != "x-worxbend-replay-attempt" || string(attempt.Value) != strconv.Itoa(got.Publish[0].Attempt) ||
			of.Key != "x-worxbend-replay-of" || string(of.Value) != l.Ref() {
			t.Fatalf("%s=%s %s=%s", attempt.Key, attempt.Value, of.Key, of.Value)
		}
	})
}

func TestPublishedIsTheOldestFirst(t *testing.T) {
	at := func(partition int32, offset int64) deadletter.Entry {
		l := poison()
		l.Record.Partition, l.Record.Offset = partition, offset
		return entry(l)
	}
	newestFirst := []deadletter.Entry{at(0, 5), at(0, 9), at(1, 2), at(0, 7), at(1, 1)}
	var got []string
	for _, r := range deadletter.Plan(newestFirst, bounds()).Publish {
		got = append(got, strings.TrimPrefix(r.Ref, owned+"/"))
	}
	if want := []string{"1/1", "0/5", "1/2", "0/7", "0/9"}; !slices.Equal(got, want) { // each partition's in order of its offsets
		t.Errorf("%q, want %q", got, want)
	}
}

func TestNamedRecordsAreReplayedAllOrNotAtAll(t *testing.T) {
	named := deadletter.Request{Limit: 2, Refs: []string{"a/0/1", "a/0/2"}}
	newest := deadletter.Request{Limit: 2}
	skipped := deadletter.Intent{Skipped: []deadletter.Skip{{Ref: "a/0/2", Reason: deadletter.SkipForeignTopic, Detail: "d"}}}
	for name, tc := range map[string]struct {
		q      deadletter.Request
		page   deadletter.Page
		intent deadletter.Intent
		is     error
		says   string
	}{
		"all are there":           {named, deadletter.Page{}, deadletter.Intent{}, nil, ""},
		"one is missing":          {named, deadletter.Page{Missing: []string{"a/0/1"}}, deadletter.Intent{}, deadletter.ErrIncomplete, "missing a/0/1"},
		"one is skipped":          {named, deadletter.Page{}, skipped, deadletter.ErrIncomplete, "skipped a/0/2 (foreign-topic: d)"},
		"the window is full":      {named, deadletter.Page{Missing: []string{"a/0/1"}, Truncated: true, Scanned: 200}, deadletter.Intent{}, deadletter.ErrIncomplete, "older than the 200 records"},
		"the time was up":         {named, deadletter.Page{Missing: []string{"a/0/1"}, TimedOut: true}, deadletter.Intent{}, deadletter.ErrIncomplete, "poll timeout"},
		"found before time is up": {named, deadletter.Page{TimedOut: true}, deadletter.Intent{}, nil, ""},
		"a skip among the newest": {newest, deadletter.Page{}, skipped, nil, ""},
		"newest that were unread": {newest, deadletter.Page{TimedOut: true}, deadletter.Intent{}, deadletter.ErrTimedOut, "nothing was published"},
	} {
		t.Run(name, func(t *testing.T) {
			err := deadletter.Refusal(tc.q, tc.page, tc.intent)
			if !errors.Is(err, tc.is) || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestASkipSaysWhy(t *testing.T) {
	for attempt, says := range map[string]string{"two": "cannot be read", "3": "replayed 3 times of at most 3"} {
		got := deadletter.Plan([]deadletter.Entry{entry(withAttempt(attempt))}, bounds())
		if len(got.Skipped) != 1 || !strings.Contains(got.Skipped[0].Detail, says) {
			t.Errorf("%+v", got)
		}
	}
}

// What a replay writes is counted by the next generation, so that a loop ends.
func TestALoopEndsAtTheLastAttempt(t *testing.T) {
	l := poison()
	for generation := 1; generation <= 3; generation++ {
		got := deadletter.Plan([]deadletter.Entry{entry(l)}, bounds())
		if len(got.Publish) != 1 || got.Publish[0].Attempt != generation {
			t.Fatalf("generation %d: %+v", generation, got)
		}
		l.Record, l.Record.Offset = got.Publish[0].Record, l.Record.Offset+1
		if l.ReplayOf() != got.Publish[0].Ref {
			t.Errorf("made of %s", l.ReplayOf())
		}
	}
	if got := deadletter.Plan([]deadletter.Entry{entry(l)}, bounds()); len(got.Publish) != 0 {
		t.Errorf("a fourth: %+v", got)
	}
}
