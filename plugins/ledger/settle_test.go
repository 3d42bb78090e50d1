package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"appliance/internal/carrier"
	"appliance/internal/event"
	"appliance/internal/intake"
)

var at = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// batchOf makes one batch of n records in a span of each partition, every record an event of its own.
func batchOf(n int, partitions ...int32) *intake.Batch {
	b := &intake.Batch{ID: 1}
	for _, p := range partitions {
		span := intake.Span{TP: intake.TP{Topic: "events", Partition: p}, TopicID: [16]byte{1}, Epoch: 1, First: 100, Next: 100 + int64(n)}
		for i := range n {
			span.Records = append(span.Records, structured("events", p, 100+int64(i), fmt.Sprintf("%d-%d", p, i)))
		}
		b.Spans = append(b.Spans, span)
	}
	return b
}

func structured(topic string, partition int32, offset int64, id string) event.Record {
	return event.Record{
		Topic: topic, TopicID: [16]byte{1}, Partition: partition, Offset: offset, Timestamp: at, Value: []byte(eventJSON(id)),
		Headers: []event.Header{{Key: "content-type", Value: []byte("application/cloudevents+json")}},
	}
}

func eventJSON(id string) string {
	return fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":"/s","type":"t","time":"2026-11-15T11:00:00Z","data":{"n":1}}`, id)
}

// decoded are the messages as they leave the decoder.
func decoded(b *intake.Batch) []message {
	var out []message
	for s := range b.Spans {
		for i := range b.Spans[s].Records {
			c := carrier.Carrier{Batch: b, Span: s, Index: i}
			c.Event, c.Fault = event.DecodeRecord(c.Record())
			m := message{carrier: c, bytes: c.Record().Value}
			if c.Event != nil {
				m.bytes = c.Event.Raw
			}
			out = append(out, m)
		}
	}
	return out
}

func TestSettle(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(b *intake.Batch, m []message) []message
		rows    string // ids
		letters string // offset:reason, in the order of publishing
		detail  string
		copies  int // entries beyond rows
	}{
		{"a batch of good records is all rows", func(_ *intake.Batch, m []message) []message { return m }, "0-0 0-1 0-2", "", "", 0},
		{"a fault of the decoder is a dead letter with its reason", func(_ *intake.Batch, m []message) []message {
			m[1].carrier.Event, m[1].carrier.Fault = nil, &event.Fault{Reason: "no-time", Detail: "time: absent"}
			return m
		}, "0-0 0-2", "101:no-time", "time: absent", 0},
		{"a failed processor is a dead letter", func(_ *intake.Batch, m []message) []message {
			m[0].failed = errors.New("mapping broke")
			return m
		}, "0-1 0-2", "100:processor-failed", "mapping broke", 0},
		{"a fault of the decoder goes before a failed processor", func(_ *intake.Batch, m []message) []message {
			m[0].carrier.Event, m[0].carrier.Fault, m[0].failed = nil, &event.Fault{Reason: "no-time"}, errors.New("x")
			return m
		}, "0-1 0-2", "100:no-time", "", 0},
		{
			"a dropped message is a dead letter, wherever it was", func(_ *intake.Batch, m []message) []message { return m[1:2] },
			"0-1", "100:processor-failed 102:processor-failed", "dropped by a processor", 0,
		},
		{"what a processor changed is decoded again", func(_ *intake.Batch, m []message) []message {
			m[2].bytes = []byte(eventJSON("other"))
			return m
		}, "0-0 0-1 other", "", "", 0},
		{"an equal copy of the bytes is no change", func(_ *intake.Batch, m []message) []message {
			m[2].bytes = slices.Clone(m[2].bytes)
			return m
		}, "0-0 0-1 0-2", "", "", 0},
		{"what a processor made no event of is a dead letter", func(_ *intake.Batch, m []message) []message {
			m[2].bytes = []byte(`{"temperature":4}`)
			return m
		}, "0-0 0-1", "102:processor-failed", "a processor made no event of it: missing-attribute", 0},
		{"an emptied message is a dead letter", func(_ *intake.Batch, m []message) []message {
			m[2].bytes = nil
			return m
		}, "0-0 0-1", "102:processor-failed", "a processor made no event of it", 0},
		{"a record that became two messages of different identity is two rows", func(_ *intake.Batch, m []message) []message {
			second := m[1]
			second.bytes = []byte(eventJSON("second"))
			return slices.Insert(m, 2, second)
		}, "0-0 0-1 second 0-2", "", "", 0},
		{"a record that became two equal messages is one row", func(_ *intake.Batch, m []message) []message {
			return slices.Insert(m, 2, m[1])
		}, "0-0 0-1 0-2", "", "", 1},
		{"a record whose messages both failed is one dead letter", func(_ *intake.Batch, m []message) []message {
			m[1].failed = errors.New("x")
			return slices.Insert(m, 2, m[1])
		}, "0-0 0-2", "101:processor-failed", "x", 0},
		{"letters are in offset order whatever their cause", func(_ *intake.Batch, m []message) []message {
			m[2].failed = errors.New("x")
			m[0].carrier.Event, m[0].carrier.Fault = nil, &event.Fault{Reason: "no-time"}
			return []message{m[2], m[0]}
		}, "", "100:no-time 101:processor-failed 102:processor-failed", "", 0},
		{"PG-21 one event at two offsets is one row", func(b *intake.Batch, _ []message) []message {
			b.Spans[0].Records[2].Value = b.Spans[0].Records[1].Value
			return decoded(b)
		}, "0-0 0-1", "", "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := batchOf(3, 0)
			s, err := settle(c.change(b, decoded(b)), "persist", at)
			if err != nil {
				t.Fatal(err)
			}
			if got := ids(s); got != c.rows {
				t.Errorf("rows %q, want %q", got, c.rows)
			}
			if got := lettersOf(s); got != c.letters {
				t.Errorf("letters %q, want %q", got, c.letters)
			}
			if c.detail != "" && !strings.HasPrefix(s.letters[0].Detail, c.detail) {
				t.Errorf("detail %q, want %q", s.letters[0].Detail, c.detail)
			}
			if got := len(s.entries) - len(s.rows); got != c.copies {
				t.Errorf("%d copies, want %d", got, c.copies)
			}
			if len(s.positions) != 1 || s.positions[0].Next != 103 || s.positions[0].Epoch != 1 {
				t.Errorf("positions %+v", s.positions)
			}
		})
	}
}

func ids(s settlement) string {
	var out []string
	for _, r := range s.rows {
		out = append(out, r.ID)
	}
	return strings.Join(out, " ")
}

func lettersOf(s settlement) string {
	var out []string
	for _, l := range s.letters {
		out = append(out, fmt.Sprintf("%d:%s", l.Record.Offset, l.Reason))
	}
	return strings.Join(out, " ")
}

func TestAChangedMessageKeepsTheHashOfWhatWasReceived(t *testing.T) {
	b := batchOf(1, 0)
	m := decoded(b)
	m[0].bytes = []byte(eventJSON("other"))
	s, err := settle(m, "persist", at)
	if err != nil || s.rows[0].SHA256 != m[0].carrier.Event.SHA256 || string(s.rows[0].Raw) != eventJSON("other") {
		t.Errorf("row %+v, %v", s.rows[0], err)
	}
}

func TestAMessageThatNobodyDecodedIsRefused(t *testing.T) {
	b := batchOf(2, 0)
	m := decoded(b)
	m[1].carrier.Event = nil
	if _, err := settle(m, "persist", at); !errors.Is(err, ErrUndecoded) {
		t.Errorf("got %v", err)
	}
}

func TestSettleAccountsForEveryRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 8).Draw(t, "records a span")
		batches := []*intake.Batch{batchOf(size, 0, 1), batchOf(size, 2)}
		messages := slices.Concat(decoded(batches[0]), decoded(batches[1]))
		var left []message
		arrived := map[*intake.Batch]bool{}
		for i, m := range messages {
			switch rapid.SampledFrom([]string{"keep", "drop", "fail", "fault", "twice", "break", "same id"}).Draw(t, strconv.Itoa(i)) {
			case "drop":
				continue
			case "fail":
				m.failed = errors.New("x")
			case "fault":
				m.carrier.Event, m.carrier.Fault = nil, &event.Fault{Reason: "no-time"}
			case "twice":
				left = append(left, m)
			case "break":
				m.bytes = []byte("{")
			case "same id":
				m.bytes = []byte(eventJSON("same"))
			}
			arrived[m.carrier.Batch] = true
			left = append(left, m)
		}
		s, err := settle(left, "persist", at)
		if err != nil {
			t.Fatal(err)
		}
		check(t, s, arrived)
	})
}

func check(t *rapid.T, s settlement, arrived map[*intake.Batch]bool) {
	accounted, lettered, identities := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, e := range s.entries {
		accounted[fmt.Sprint(e.record.Partition, e.record.Offset)] = true
		if e.row.Offset != e.record.Offset || e.row.Partition != e.record.Partition {
			t.Fatalf("the row of %v names %v", e.record.Offset, e.row.Offset)
		}
	}
	for i, l := range s.letters {
		key := fmt.Sprint(l.Record.Partition, l.Record.Offset)
		if lettered[key] {
			t.Fatalf("two letters of %s", key)
		}
		accounted[key], lettered[key] = true, true
		if i > 0 && l.Record.Partition == s.letters[i-1].Record.Partition && l.Record.Offset < s.letters[i-1].Record.Offset {
			t.Fatal("letters are out of order")
		}
	}
	for _, r := range s.rows {
		key := fmt.Sprint(r.OccurredAt, r.Source, r.ID)
		if identities[key] {
			t.Fatalf("two rows of %s", key)
		}
		identities[key] = true
	}
	spans, want := 0, 0
	for b := range arrived {
		want += b.Len()
		spans += len(b.Spans)
	}
	if len(accounted) != want || len(s.positions) != spans || len(s.batches) != len(arrived) {
		t.Fatalf("%d records of %d accounted for, %d positions of %d", len(accounted), want, len(s.positions), spans)
	}
}
