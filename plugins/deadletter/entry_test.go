package deadletter

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"appliance/internal/carrier"
	"appliance/internal/deadletter"
	"appliance/internal/event"
	"appliance/internal/intake"
	"appliance/internal/pg"
)

const dlq = "events.cloudevents.v1.dlq"

func now() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

func dlqID() [16]byte { return [16]byte{0: 3, 15: 7} }

func letter(offset int64) deadletter.Letter {
	return deadletter.Letter{
		Pipeline: "persist", Reason: event.ReasonBadAttribute, Detail: "id and source have 2701 bytes together",
		At: now().Add(-time.Minute), Event: &deadletter.Identity{ID: "e", Type: "t", Source: "/s"},
		Record: event.Record{
			Topic: "events.cloudevents.v1", TopicID: [16]byte{1}, Partition: 3, Offset: offset,
			Timestamp: now().Add(-time.Hour), Value: []byte(`{"a":1}`),
			Headers: []event.Header{
				{Key: deadletter.HeaderAttempt, Value: []byte("2")},
				{Key: deadletter.HeaderReplayOf, Value: []byte("events.cloudevents.v1/3/1")},
			},
		},
	}
}

// records are the letter's messages as records of partition 0 of the dead-letter topic, the first at offset from.
func records(t *testing.T, l deadletter.Letter, maxBytes int, from int64) []event.Record {
	t.Helper()
	messages, err := l.Encode(maxBytes)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]event.Record, len(messages))
	for i, m := range messages {
		out[i] = record(from+int64(i), m.Value, m.Headers...)
	}
	return out
}

func record(offset int64, value []byte, headers ...event.Header) event.Record {
	return event.Record{
		Topic: dlq, TopicID: dlqID(), Partition: 0, Offset: offset, Timestamp: now().Add(-time.Second), Value: value, Headers: headers,
	}
}

func TestALetterBecomesItsEntry(t *testing.T) {
	l := letter(9912)
	got := entry(&records(t, l, 1<<20, 41)[0], dlqID(), now())
	want := pg.DeadLetter{
		Ref: "events.cloudevents.v1/3/9912", DLQTopicID: dlqID(), DLQPartition: 0, DLQOffset: 41,
		OriginTopic: "events.cloudevents.v1", OriginTopicID: [16]byte{1}, OriginPartition: 3, OriginOffset: 9912,
		Pipeline: "persist", Reason: "bad-attribute", Detail: "id and source have 2701 bytes together",
		Fingerprint: deadletter.Fingerprint("bad-attribute", "id and source have 1 bytes together"),
		EventID:     "e", EventType: "t", EventSource: "/s", Attempt: 2, ReplayOf: "events.cloudevents.v1/3/1",
		Readable: true, Part: 1, Parts: 1, Seen: now().Add(-time.Second),
	}
	if got != want {
		t.Errorf("entry\n got %+v\nwant %+v", got, want)
	}
}

func TestEveryPartOfALetterHasAllOfTheEntry(t *testing.T) {
	l := letter(7)
	l.Record.Value = bytes.Repeat([]byte{0xFF}, 20_000)
	whole := entry(&records(t, l, 1<<20, 0)[0], dlqID(), now())
	parts := records(t, l, 10_000, 0)
	for i := range parts {
		got := entry(&parts[i], dlqID(), now())
		want := whole
		want.OriginTopicID = [16]byte{} // only the envelope has it
		want.DLQOffset, want.Part, want.Parts = int64(i), i+1, len(parts)
		if got != want || len(parts) < 3 {
			t.Errorf("part %d of %d\n got %+v\nwant %+v", i+1, len(parts), got, want)
		}
	}
}

func TestAForeignRecordIsAnEntryWithItsProblem(t *testing.T) {
	for name, value := range map[string][]byte{
		"a tombstone": nil, "text": []byte("hello"), "bytes": {0xFF, 0x00}, "an event": []byte(`{"specversion":"1.0","type":"x"}`),
	} {
		r := record(41, value)
		got := entry(&r, dlqID(), now())
		if got.Readable || got.Problem == "" || got.Ref != dlq+"/0/41" || got.OriginTopic != "" || got.Fingerprint == "" || got.Parts != 1 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestALetterWithoutAnIdentityIsReadable(t *testing.T) {
	l := letter(1)
	l.Event = nil
	if got := entry(&records(t, l, 1<<20, 0)[0], dlqID(), now()); !got.Readable || got.EventID != "" {
		t.Errorf("%+v", got)
	}
}

func TestSeenAt(t *testing.T) {
	for name, tc := range map[string]struct{ at, want time.Time }{
		"a time that was":             {now().Add(-time.Hour), now().Add(-time.Hour)},
		"now":                         {now(), now()},
		"a time to come":              {now().Add(time.Millisecond), now()},
		"no timestamp":                {time.UnixMilli(-1), now()},
		"the zero time":               {time.Time{}, now()},
		"the least of 64 bits":        {time.UnixMilli(math.MinInt64), now()},
		"the greatest of 64 bits":     {time.UnixMilli(math.MaxInt64), now()},
		"the first second of Kafka's": {time.Unix(0, 1), now()},
	} {
		if got := seenAt(tc.at, now()); !got.Equal(tc.want) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// carriersOf are the messages that the input makes of a batch.
func carriersOf(b *intake.Batch) []carrier.Carrier {
	var out []carrier.Carrier
	for s := range b.Spans {
		for i := range b.Spans[s].Records {
			out = append(out, carrier.Carrier{Batch: b, Span: s, Index: i})
		}
	}
	return out
}

func TestPlanAccountsForEveryBatchWhateverWasDroppedOrRepeated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []carrier.Carrier
		for id := range rapid.IntRange(1, 3).Draw(t, "batches") {
			b := &intake.Batch{ID: uint64(id)}
			for p := range rapid.Int32Range(1, 4).Draw(t, "partitions") {
				s := intake.Span{TP: intake.TP{Topic: dlq, Partition: p}, TopicID: dlqID(), Epoch: int64(id) + 1}
				for o := range rapid.Int64Range(1, 5).Draw(t, "records") {
					r := record(o, rapid.SliceOf(rapid.Byte()).Draw(t, "value"))
					r.Partition = p
					s.Records = append(s.Records, r)
					s.Next = o + 1
				}
				b.Spans = append(b.Spans, s)
			}
			all = append(all, carriersOf(b)...)
		}
		some := rapid.SliceOfN(rapid.SampledFrom(all), 1, 2*len(all)).Draw(t, "messages")
		w := plan(some, now())
		var spans, distinct int
		seen := map[*event.Record]bool{}
		for _, c := range some {
			if !seen[c.Record()] {
				seen[c.Record()] = true
				distinct++
			}
			if !slices.Contains(w.batches, c.Batch) {
				t.Fatal("a batch is not accounted for")
			}
		}
		for _, b := range w.batches {
			for _, s := range b.Spans {
				spans++
				want := pg.Position{Topic: s.Topic, TopicID: s.TopicID, Partition: s.Partition, Epoch: s.Epoch, Next: s.Next}
				if !slices.Contains(w.positions, want) {
					t.Fatalf("no position %+v", want)
				}
			}
		}
		if len(w.positions) != spans || len(w.entries) != distinct {
			t.Fatalf("%d positions of %d spans, %d entries of %d records", len(w.positions), spans, len(w.entries), distinct)
		}
		for _, e := range w.entries {
			if e.Ref == "" || e.Readable == (e.Problem != "") || strings.Contains(e.Problem, "\x00") {
				t.Fatalf("entry %+v", e)
			}
		}
	})
}
