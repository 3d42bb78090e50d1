package ledger

import (
	"context"
	"errors"
	"testing"
	"time"

	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"github.com/redpanda-data/benthos/v4/public/service"

	"appliance/internal/pg"
	"appliance/internal/run"
)

// source hands one batch to the stream until it is acknowledged.
type source struct {
	messages []message
	turns    chan bool // true: hand it out; false: the end
	settle   func(err error)
}

func (s *source) Connect(context.Context) error { return nil }

func (s *source) ReadBatch(ctx context.Context) (service.MessageBatch, service.AckFunc, error) {
	select {
	case again := <-s.turns:
		if !again {
			return nil, nil, service.ErrEndOfInput
		}
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	return engineBatch(s.messages), func(_ context.Context, err error) error {
		s.settle(err)
		s.turns <- err != nil
		return nil
	}, nil
}

func (s *source) Close(context.Context) error { return nil }

// TestTheEngineBringsFenceAndReceiptBack runs the output in a stream: a fenced batch comes back with its reason, and the
// receipt is given before the acknowledgement.
func TestTheEngineBringsFenceAndReceiptBack(t *testing.T) {
	b := newBench(t, "")
	batch := batchOf(3, 0)
	s := &source{messages: decoded(batch), turns: make(chan bool, 1)}
	s.turns <- true
	next := b.claim(0).Epoch
	var ends []error
	s.settle = func(err error) {
		ends = append(ends, err)
		if err == nil && len(b.receipts) != 1 {
			t.Errorf("acknowledged with %d receipts", len(b.receipts))
		}
		batch.Spans[0].Epoch = next
	}
	env := service.NewEnvironment()
	b.run = run.New("persist")
	if err := Register(env, b.deps()); err != nil {
		t.Fatal(err)
	}
	err := env.RegisterBatchInput("source", service.NewConfigSpec(),
		func(*service.ParsedConfig, *service.Resources) (service.BatchInput, error) { return s, nil })
	if err != nil {
		t.Fatal(err)
	}
	builder := env.NewStreamBuilder()
	if err := builder.SetYAML(`
input: { source: {} }
pipeline: { threads: 1 }
output: { postgres_ledger: { database: events, dead_letters: main } }
logger: { level: "OFF" }
`); err != nil {
		t.Fatal(err)
	}
	stream, err := builder.Build()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := stream.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if len(ends) != 2 || !errors.Is(ends[0], pg.ErrFenced) || ends[1] != nil || b.run.Cause() != nil {
		t.Errorf("ends %v, cause %v", ends, b.run.Cause())
	}
	b.expect(3, 103)
}

func TestResourcesThatCannotBeReachedEndTheRun(t *testing.T) {
	away := errors.New("nobody there")
	r := run.New("persist")
	o := &output{conf: Config{Database: "events"}, deps: Deps{
		Run:      r,
		Database: func(context.Context, string) (Store, error) { return nil, away },
	}}
	for range 2 {
		if err := o.Connect(t.Context()); !errors.Is(err, away) || !errors.Is(r.Cause(), ErrConnect) {
			t.Fatalf("%v, cause %v", err, r.Cause())
		}
	}
}

func TestTheExampleOfTheSpecificationCompiles(t *testing.T) {
	env := service.NewEnvironment()
	if err := Register(env, Deps{Run: run.New("persist")}); err != nil {
		t.Fatal(err)
	}
	builder := env.NewStreamBuilder()
	if err := builder.AddOutputYAML("postgres_ledger: { database: events, dead_letters: main, attempts: 3, retry_delay: 200ms }"); err != nil {
		t.Fatal(err)
	}
}
