package kafka_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"appliance/internal/broker"
	"appliance/internal/carrier"
	"appliance/internal/event"
	"appliance/internal/intake"
	"appliance/internal/pg"
	"appliance/internal/pipeline"
	"appliance/internal/run"
	"appliance/plugins/kafka"
)

// queue is a subscription of some batches. A batch that was refused comes again, as in the real one.
type queue struct {
	mu      sync.Mutex
	waiting []*intake.Batch
	acked   []*intake.Batch
	nacked  int
	fenced  int
	settled chan struct{} // one for each ack and nack
	next    func()        // called by Next; a panic is its
}

func (q *queue) Next(ctx context.Context, ended <-chan struct{}) (*intake.Batch, error) {
	q.next()
	q.mu.Lock()
	if len(q.waiting) > 0 {
		defer q.mu.Unlock()
		b := q.waiting[0]
		q.waiting = q.waiting[1:]
		return b, nil
	}
	q.mu.Unlock()
	select {
	case <-ended:
		return nil, broker.ErrEnded
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (q *queue) Ack(b *intake.Batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.acked = append(q.acked, b)
	q.settled <- struct{}{}
}

func (q *queue) Nack(_ *intake.Batch, fenced bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.nacked++
	if fenced {
		q.fenced++
	}
	q.settled <- struct{}{}
}

// scene is the input in a stream of the real engine: its run, what it reads, and the messages that reached the output.
type scene struct {
	takesDropped bool
	run          *run.Run
	queue        *queue
	mu           sync.Mutex
	seen         []carrier.Carrier
	bytes        [][]byte
	write        func(service.MessageBatch) error
	given        map[*intake.Batch]bool // receipts
}

func record(offset int64, value []byte) event.Record {
	return event.Record{Topic: "t", Offset: offset, Value: value}
}

func newScene(records ...event.Record) *scene {
	s := &scene{run: run.New("p"), given: map[*intake.Batch]bool{}, write: func(service.MessageBatch) error { return nil }}
	s.queue = &queue{settled: make(chan struct{}, 16), next: func() {}}
	if len(records) > 0 {
		s.queue.waiting = []*intake.Batch{{ID: 1, Spans: []intake.Span{intake.NewSpan(intake.TP{Topic: "t"}, 1, records)}}}
	}
	return s
}

func (s *scene) Connect(context.Context) error { return nil }
func (s *scene) Close(context.Context) error   { return nil }

func (s *scene) WriteBatch(_ context.Context, batch service.MessageBatch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range batch {
		raw, err := m.AsBytes()
		if err != nil {
			return err
		}
		c, _ := carrier.From(m.Context())
		s.seen, s.bytes = append(s.seen, c), append(s.bytes, raw)
		s.given[c.Batch] = true
	}
	return s.write(batch)
}

func (s *scene) receipt(b *intake.Batch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.given[b]
}

// dropped is the output's answer to a batch that it never saw: a refusal, unless the scene takes it.
func (s *scene) dropped(_ context.Context, b *intake.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.takesDropped {
		return errors.New("nobody takes what was dropped")
	}
	s.given[b] = true
	return nil
}

// play runs the stream until do has returned and the engine came back.
func (s *scene) play(t *testing.T, processors string, subscribe error, do func()) {
	t.Helper()
	env := pipeline.Engine()
	err := errors.Join(kafka.Register(env, kafka.Deps{
		Run: s.run, Settled: s.receipt, Dropped: s.dropped,
		Subscribe: func(context.Context, kafka.Config) (kafka.Subscription, error) { return s.queue, subscribe },
	}), env.RegisterBatchOutput("scene", service.NewConfigSpec(), func(*service.ParsedConfig, *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
		return s, service.BatchPolicy{}, 1, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	b := env.NewStreamBuilder()
	if err := b.SetYAML("logger: {level: none}\ninput:\n  kafka: {cluster: main, topics: [t], group: g}\n" + processors + "output:\n  scene: {}\n"); err != nil {
		t.Fatal(err)
	}
	stream, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	returned := make(chan error, 1)
	go func() { returned <- stream.Run(context.Background()) }()
	do()
	select {
	case err := <-returned:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the end of input did not end the stream")
	}
}

func TestABatchIsAckedOnceItIsStored(t *testing.T) {
	s := newScene(record(7, []byte("a")), record(8, nil), record(9, []byte{}))
	batch := s.queue.waiting[0]
	s.play(t, "", nil, func() { <-s.queue.settled; s.run.Drain() })
	if len(s.queue.acked) != 1 || s.queue.acked[0] != batch || s.queue.nacked != 0 {
		t.Fatalf("%d acks, %d nacks", len(s.queue.acked), s.queue.nacked)
	}
	if len(s.seen) != 3 {
		t.Fatalf("%d messages of 3 records", len(s.seen))
	}
	for i, c := range s.seen {
		if c.Batch != batch || c.Record() != &batch.Spans[0].Records[i] || string(s.bytes[i]) != string(c.Record().Value) {
			t.Errorf("message %d carries %+v", i, c)
		}
	}
	if s.seen[1].Record().Value != nil || s.seen[2].Record().Value == nil {
		t.Error("a null value and an empty one are not told apart in the record")
	}
}

func TestABatchThatWasDroppedWholeIsMadeDurableBeforeItIsAcked(t *testing.T) {
	s := newScene(record(7, []byte("a")), record(8, []byte("b")))
	s.takesDropped = true
	batch := s.queue.waiting[0]
	s.play(t, "pipeline:\n  processors:\n    - mapping: root = deleted()\n", nil, func() { <-s.queue.settled; s.run.Drain() })
	if len(s.queue.acked) != 1 || !s.given[batch] || len(s.seen) != 0 || s.queue.nacked != 0 {
		t.Fatalf("%d acks, durable %v, %d messages written, %d nacks", len(s.queue.acked), s.given[batch], len(s.seen), s.queue.nacked)
	}
}

func TestWhatEndsARun(t *testing.T) {
	refuse := func(err error) func(service.MessageBatch) error {
		return func(service.MessageBatch) error { return err }
	}
	settled := func(s *scene) { <-s.queue.settled }
	const filter = "pipeline:\n  processors:\n    - mapping: root = deleted()\n"
	boom := errors.New("boom")
	for name, tc := range map[string]struct {
		write      func(service.MessageBatch) error
		processors string
		subscribe  error
		next       func()
		do         func(*scene)
		want       error
		fenced     int
		nacked     int
	}{
		"an order to drain":                                {nil, filter, nil, nil, func(s *scene) { s.run.Drain() }, run.ErrDrained, 0, -1},
		"a batch that the output refuses":                  {refuse(boom), "", nil, nil, settled, kafka.ErrRefused, 0, 1},
		"a batch that no part of reached the output":       {nil, filter, nil, nil, settled, kafka.ErrRefused, 0, 1},
		"not a batch that is fenced, whose claim is anew":  {refuse(pg.ErrFenced), "", nil, nil, func(s *scene) { <-s.queue.settled; s.run.Drain() }, run.ErrDrained, 1, 1},
		"a subscription that can't be opened":              {nil, "", boom, nil, func(*scene) {}, kafka.ErrConnect, 0, 0},
		"a panic of the subscription, and not the process": {nil, "", nil, func() { panic("next") }, func(*scene) {}, kafka.ErrPanic, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(record(1, []byte("a")), record(2, []byte("b")))
			if tc.write != nil {
				s.write = tc.write
			}
			if tc.next != nil {
				s.queue.next = tc.next
			}
			s.play(t, tc.processors, tc.subscribe, func() { tc.do(s) })
			if err := s.run.Cause(); !errors.Is(err, tc.want) {
				t.Errorf("cause %v, want %v", err, tc.want)
			}
			if len(s.queue.acked) != 0 || s.queue.fenced != tc.fenced || tc.nacked >= 0 && s.queue.nacked != tc.nacked {
				t.Errorf("%d acks, %d nacks, %d of them fenced", len(s.queue.acked), s.queue.nacked, s.queue.fenced)
			}
		})
	}
}
