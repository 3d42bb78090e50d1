package killtest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// place is a record's coordinates.
type place struct {
	partition int32
	offset    int64
}

// load produces numbered events, of which every poisonEvery-th is poison of one of the five kinds, and remembers where
// each went.
type load struct {
	topic       string
	total       int
	poisonEvery int
	from        time.Time // the events' times go on from here, a millisecond each
	client      *kgo.Client

	mu     sync.Mutex
	sent   int
	poison map[place]poisoned
	failed error
}

type poisoned struct {
	id    string
	kind  string
	value []byte
}

var poisonKinds = []string{"malformed", "missing-attribute", "no-time", "unstorable", "outside-partitions"}

func newLoad(t *testing.T, bootstrap, topic string, total, poisonEvery int) *load {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.DefaultProduceTopic(topic),
		kgo.MaxBufferedRecords(20_000), kgo.ProducerLinger(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &load{
		topic: topic, total: total, poisonEvery: poisonEvery, client: client, poison: map[place]poisoned{},
		from: time.Now().UTC().Add(-time.Hour).Truncate(time.Millisecond),
	}
}

func id(n int) string { return fmt.Sprintf("evt-%09d", n) }

func (l *load) isPoison(n int) bool { return n%l.poisonEvery == l.poisonEvery-1 }

// record makes event n: structured and binary in turn, poison where it is its turn.
func (l *load) record(n int) *kgo.Record {
	source := fmt.Sprintf("/devices/%d", n%1000)
	at := l.from.Add(time.Duration(n) * time.Millisecond).Format("2006-01-02T15:04:05.000Z07:00")
	data := fmt.Sprintf(`{"temperature":%d.5,"note":"%s"}`, n%40, strings.Repeat("x", 200))
	r := &kgo.Record{Key: []byte(source)}
	if l.isPoison(n) {
		return l.spoil(r, n, source, at, data)
	}
	if n%2 == 0 {
		r.Headers = []kgo.RecordHeader{
			{Key: "ce_specversion", Value: []byte("1.0")},
			{Key: "ce_id", Value: []byte(id(n))},
			{Key: "ce_source", Value: []byte(source)},
			{Key: "ce_type", Value: []byte("com.example.reading")},
			{Key: "ce_time", Value: []byte(at)},
			{Key: "content-type", Value: []byte("application/json")},
		}
		r.Value = []byte(data)
		return r
	}
	return structured(r, fmt.Sprintf(`{"specversion":"1.0","id":"%s","source":"%s","type":"com.example.reading","time":"%s","data":%s}`, id(n), source, at, data))
}

func structured(r *kgo.Record, value string) *kgo.Record {
	r.Headers = []kgo.RecordHeader{{Key: "content-type", Value: []byte("application/cloudevents+json")}}
	r.Value = []byte(value)
	return r
}

func (l *load) spoil(r *kgo.Record, n int, source, at, data string) *kgo.Record {
	head := fmt.Sprintf(`{"specversion":"1.0","id":"%s","source":"%s"`, id(n), source)
	switch l.kind(n) {
	case "malformed":
		return structured(r, head+`,"type":"t","time":"`+at+`","data":{"cut":`)
	case "missing-attribute":
		return structured(r, head+`,"time":"`+at+`","data":`+data+`}`)
	case "no-time":
		return structured(r, head+`,"type":"t","data":`+data+`}`)
	case "unstorable":
		return structured(r, head+`,"type":"t","time":"`+at+`","data":{"m":"a\u0000b"}}`)
	default: // the database alone can tell
		return structured(r, head+`,"type":"t","time":"1999-12-31T23:59:59Z","data":`+data+`}`)
	}
}

func (l *load) kind(n int) string { return poisonKinds[(n/l.poisonEvery)%len(poisonKinds)] }

// upTo produces until n events were sent, and waits until the broker has them.
func (l *load) upTo(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	for ; l.sent < min(n, l.total); l.sent++ {
		i := l.sent
		l.client.Produce(ctx, l.record(i), func(r *kgo.Record, err error) { l.produced(i, r, err) })
	}
	if err := l.client.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		t.Fatal(l.failed)
	}
}

func (l *load) produced(n int, r *kgo.Record, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		l.failed = fmt.Errorf("produce event %d: %w", n, err)
	case l.isPoison(n):
		l.poison[place{r.Partition, r.Offset}] = poisoned{id: id(n), kind: l.kind(n), value: r.Value}
	}
}
