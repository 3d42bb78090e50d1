package broker

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"appliance/internal/deadletter"
	"appliance/internal/event"
	"appliance/internal/testservices"
)

func letters(n, size int) []deadletter.Letter {
	all := make([]deadletter.Letter, n)
	for i := range all {
		value := make([]byte, size) // random, so that no compression makes it fit
		for j := range value {
			value[j] = byte(rand.IntN(256))
		}
		all[i] = deadletter.Letter{
			Pipeline: "persist", Reason: event.ReasonMalformedBinary, Detail: "for a test", At: time.UnixMilli(1_700_000_000_000),
			Record: event.Record{
				Topic: "origin", Partition: 3, Offset: int64(100 + i), Value: value, Timestamp: time.UnixMilli(1_700_000_000_000),
				Headers: []event.Header{{Key: "h", Value: []byte("1")}, {Key: "h", Value: []byte("2")}, {Key: "h"}},
			},
		}
	}
	return all
}

func publisher(t *testing.T, bootstrap, topic string, maxBytes int) *DeadLetters {
	t.Helper()
	d, err := NewDeadLetters(Cluster{Brokers: []string{bootstrap}}, topic, maxBytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// readBack returns the letters of a topic in its order, parts joined, and how many records there were.
func readBack(t *testing.T, bootstrap, topic string) (found []deadletter.Letter, records int) {
	t.Helper()
	admin := newAdmin(t, bootstrap)
	logs, err := admin.Logs(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	parts := map[string][]deadletter.Part{}
	err = Read(ctx, Cluster{Brokers: []string{bootstrap}}, nil, logs, func(r event.Record) error {
		records++
		reading := deadletter.Read(r.Value, r.Headers)
		switch {
		case reading.Letter != nil:
			found = append(found, *reading.Letter)
		case reading.Part != nil:
			parts[string(r.Key)] = append(parts[string(r.Key)], *reading.Part)
		default:
			return fmt.Errorf("unreadable: %s", reading.Problem)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		whole, err := deadletter.Join(p)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, *deadletter.Read(whole, nil).Letter)
	}
	return found, records
}

func same(a, b event.Record) bool {
	if a.Offset != b.Offset || !bytes.Equal(a.Value, b.Value) || len(a.Headers) != len(b.Headers) {
		return false
	}
	for i := range a.Headers {
		if a.Headers[i].Key != b.Headers[i].Key || !bytes.Equal(a.Headers[i].Value, b.Headers[i].Value) ||
			(a.Headers[i].Value == nil) != (b.Headers[i].Value == nil) {
			return false
		}
	}
	return true
}

func TestDeadLettersComeInTheirOrder(t *testing.T) {
	bootstrap := testservices.Kafka(t)
	topic := testservices.Topic(t, bootstrap, 1, nil)
	sent := letters(100, 300)
	if err := publisher(t, bootstrap, topic, 0).Publish(t.Context(), sent); err != nil {
		t.Fatal(err)
	}
	found, records := readBack(t, bootstrap, topic)
	if len(found) != len(sent) || records != len(sent) {
		t.Fatalf("%d letters in %d records, want %d", len(found), records, len(sent))
	}
	for i := range sent {
		if !same(found[i].Record, sent[i].Record) {
			t.Fatalf("letter %d is of offset %d: out of order, or not what was sent", i, found[i].Record.Offset)
		}
	}
}

// DL-01: whatever a topic takes, a letter gets onto it whole: in parts that are joined again.
func TestDL01ALetterThatIsTooLargeLosesNothing(t *testing.T) {
	bootstrap := testservices.Kafka(t)
	for name, tc := range map[string]struct {
		topicTakes string
		maxBytes   int
	}{
		"larger than what is configured":                  {"1048588", 200 << 10},
		"larger than what the topic takes, which is less": {"100000", 0},
	} {
		t.Run(name, func(t *testing.T) {
			topic := testservices.Topic(t, bootstrap, 3, map[string]string{"max.message.bytes": tc.topicTakes})
			sent := append(letters(1, 900_000), letters(3, 100)...)
			if err := publisher(t, bootstrap, topic, tc.maxBytes).Publish(t.Context(), sent); err != nil {
				t.Fatal(err)
			}
			found, records := readBack(t, bootstrap, topic)
			if len(found) != len(sent) || records <= len(sent) {
				t.Fatalf("%d letters in %d records, want %d in more", len(found), records, len(sent))
			}
			whole := 0
			for _, f := range found {
				if len(f.Record.Value) == 900_000 && same(f.Record, sent[0].Record) {
					whole++
				}
			}
			if whole != 1 {
				t.Fatalf("the large letter came back whole %d times", whole)
			}
		})
	}
}

func TestATopicThatDoesNotExistRefusesInTime(t *testing.T) {
	bootstrap := testservices.Kafka(t)
	d := publisher(t, bootstrap, "no-such-topic-"+testservices.Topic(t, bootstrap, 1, nil), 0)
	d.timeout = 3 * time.Second
	begun := time.Now()
	if err := d.Publish(t.Context(), letters(1, 10)); err == nil {
		t.Fatal("a letter was published to a topic that does not exist")
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Fatalf("it took %s to say so", took)
	}
}

// The broker answers in its own order, not in that of the letters: the one that it refuses must be the one that is
// published in parts, wherever it stands.
func TestTheLetterThatIsRefusedIsTheOneThatIsPublishedInParts(t *testing.T) {
	bootstrap := testservices.Kafka(t)
	topic := testservices.Topic(t, bootstrap, 3, map[string]string{"max.message.bytes": "100000"})
	d := publisher(t, bootstrap, topic, 0)
	for place := range 12 {
		sent := letters(12, 100)
		sent[place].Record.Value = letters(1, 300_000)[0].Record.Value
		for i := range sent {
			sent[i].Record.Partition = int32(place) // a key of its own for each letter of each round
		}
		if err := d.Publish(t.Context(), sent); err != nil {
			t.Fatal(err)
		}
	}
	found, _ := readBack(t, bootstrap, topic)
	seen := map[string]bool{}
	for _, l := range found {
		seen[l.Ref()] = true
	}
	if len(seen) != 12*12 {
		t.Fatalf("%d letters are on the topic, want %d: the others are lost", len(seen), 12*12)
	}
}
