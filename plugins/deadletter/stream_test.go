package deadletter

import (
	"context"
	"log/slog"
	"testing"

	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"github.com/redpanda-data/benthos/v4/public/service"

	"appliance/internal/intake"
	"appliance/internal/run"
)

// source is an input that hands out one batch and remembers what came back.
type source struct {
	batch *intake.Batch
	acks  chan error
}

func (s *source) Connect(context.Context) error { return nil }

func (s *source) ReadBatch(context.Context) (service.MessageBatch, service.AckFunc, error) {
	if s.batch == nil {
		return nil, nil, service.ErrEndOfInput
	}
	b := s.batch
	s.batch = nil
	return messagesOf(b), func(_ context.Context, err error) error { s.acks <- err; return nil }, nil
}

func (s *source) Close(context.Context) error { return nil }

// environment has the output under test, and src as the input `source`.
func environment(t *testing.T, deps Deps, src *source) *service.Environment {
	t.Helper()
	env := service.NewEnvironment()
	if err := Register(env, deps); err != nil {
		t.Fatal(err)
	}
	err := env.RegisterBatchInput("source", service.NewConfigSpec(), func(*service.ParsedConfig, *service.Resources) (service.BatchInput, error) {
		return src, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func TestAStreamIndexesWhatItsProcessorsLeave(t *testing.T) {
	b := setup(t, "")
	dropped := letter(6)
	dropped.Pipeline = "test"
	rs := append(records(t, letter(5), 1<<20, 0), records(t, dropped, 1<<20, 1)...)
	rs = append(rs, record(2, []byte("a mapping fails on this")))
	src := &source{batch: b.batch(t, rs...), acks: make(chan error, 1)}
	builder := environment(t, b.deps(), src).NewStreamBuilder()
	builder.SetLogger(slog.New(slog.DiscardHandler))
	if err := builder.SetYAML("input:\n  source: {}\n" + example(t, 1)); err != nil {
		t.Fatal(err)
	}
	stream, err := builder.Build()
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-src.acks; err != nil {
		t.Errorf("ack: %v", err)
	}
	const want = "events.cloudevents.v1.dlq/0/2::f:{1}:1 events.cloudevents.v1/3/5:bad-attribute:t:{1}:1"
	if got := b.index(t); got != want || b.checkpoint(t) != 3 {
		t.Errorf("index %s\nwant  %s\ncheckpoint %d", got, want, b.checkpoint(t))
	}
}

// example is the configuration of the spec's example of that number.
func example(t *testing.T, n int) string {
	t.Helper()
	env := service.NewEnvironment()
	if err := Register(env, Deps{Run: run.New("docs")}); err != nil {
		t.Fatal(err)
	}
	config := ""
	env.WalkOutputs(func(name string, view *service.ConfigView) {
		if name != Name {
			return
		}
		data, err := view.TemplateData()
		if err != nil || len(data.Examples) <= n {
			t.Fatalf("examples %+v, %v", data.Examples, err)
		}
		config = data.Examples[n].Config
	})
	if config == "" {
		t.Fatal("the output is not registered")
	}
	return config
}

func TestEveryExampleCompiles(t *testing.T) {
	for n := range 2 {
		builder := environment(t, Deps{Run: run.New("docs")}, &source{}).NewStreamBuilder()
		if err := builder.SetYAML("input:\n  source: {}\n" + example(t, n)); err != nil {
			t.Errorf("example %d: %v", n, err)
		}
		if _, err := builder.Build(); err != nil {
			t.Errorf("example %d: %v", n, err)
		}
	}
}
