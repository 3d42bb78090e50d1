package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"appliance/internal/pipeline"
	"appliance/internal/run"
)

// source gives one message, and then none until the run ends.
type source struct {
	r     *run.Run
	given bool
	acked chan error
}

func (s *source) Connect(context.Context) error { return nil }

func (s *source) ReadBatch(ctx context.Context) (service.MessageBatch, service.AckFunc, error) {
	if !s.given {
		s.given = true
		return service.MessageBatch{service.NewMessage([]byte("{}"))}, func(_ context.Context, err error) error { s.acked <- err; return nil }, nil
	}
	select {
	case <-s.r.Ended():
		return nil, nil, service.ErrEndOfInput
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

func (s *source) Close(context.Context) error { return nil }

type sink struct {
	write func(ctx context.Context) error
}

func (s *sink) Connect(context.Context) error { return nil }
func (s *sink) WriteBatch(ctx context.Context, _ service.MessageBatch) error {
	return s.write(ctx)
}
func (s *sink) Close(context.Context) error { return nil }

const sourceToSink = "input:\n  test_source: {}\noutput:\n  test_sink: {}\n"

// stage is an engine with a source and a sink of the test.
func stage(t *testing.T, r *run.Run, write func(ctx context.Context) error) *service.Environment {
	t.Helper()
	env, in := pipeline.Engine(), &source{r: r, acked: make(chan error, 1)}
	err := errors.Join(
		env.RegisterBatchInput("test_source", service.NewConfigSpec(), func(*service.ParsedConfig, *service.Resources) (service.BatchInput, error) {
			return in, nil
		}),
		env.RegisterBatchOutput("test_sink", service.NewConfigSpec(), func(*service.ParsedConfig, *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
			return &sink{write}, service.BatchPolicy{}, 1, nil
		}),
		env.RegisterBatchInput("test_panic", service.NewConfigSpec(), func(*service.ParsedConfig, *service.Resources) (service.BatchInput, error) {
			panic("a constructor")
		}))
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func TestHowAStreamEnds(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	stored := func(context.Context) error { return nil }
	for name, tc := range map[string]struct {
		yaml  string
		end   func(*run.Run)
		write func(context.Context) error
		want  error
		text  string
	}{
		"drained, it ends without an error":          {sourceToSink, (*run.Run).Drain, stored, nil, ""},
		"failed, it ends with the cause":             {sourceToSink, func(r *run.Run) { r.Fail(errBoom) }, stored, errBoom, ""},
		"a drain that was asked for first counts":    {sourceToSink, func(r *run.Run) { r.Drain(); r.Fail(errBoom) }, stored, nil, ""},
		"a write that honours its context is cut":    {sourceToSink, (*run.Run).Drain, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, nil, ""},
		"text that is no configuration is refused":   {"input: [", (*run.Run).Drain, stored, nil, "build stream"},
		"a component that does not exist is refused": {"input:\n  nothing: {}\n", (*run.Run).Drain, stored, nil, "build stream"},
		"a constructor that panics ends this run":    {"input:\n  test_panic: {}\noutput:\n  test_sink: {}\n", (*run.Run).Drain, stored, errPanic, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := run.New("p")
			writing := make(chan struct{})
			var once sync.Once
			env := stage(t, r, func(ctx context.Context) error {
				once.Do(func() { close(writing) })
				return tc.write(ctx)
			})
			if tc.text == "" && !errors.Is(tc.want, errPanic) {
				go func() { <-writing; tc.end(r) }()
			}
			err := execute(env, tc.yaml, r, 2*time.Second, quiet)
			if r.Cause() == nil {
				t.Error("the run goes on: what the engine left of it could take batches that nobody settles")
			}
			switch {
			case tc.text != "":
				if err == nil || !strings.Contains(err.Error(), tc.text) {
					t.Fatalf("got %v, want %q", err, tc.text)
				}
			case !errors.Is(err, tc.want) || (tc.want == nil) != (err == nil):
				t.Fatalf("got %v, want %v", err, tc.want)
			}
		})
	}
}

// A write that ignores its context: the run is given up after the drain and a grace, and says so; what it still does
// doesn't reach the next run.
func TestAWriteThatIgnoresItsContextIsGivenUp(t *testing.T) {
	r := run.New("p")
	release, returned := make(chan struct{}), make(chan struct{})
	writing := make(chan struct{})
	env := stage(t, r, func(context.Context) error {
		defer close(returned)
		close(writing)
		<-release
		return nil
	})
	go func() { <-writing; r.Drain() }()
	begun := time.Now()
	err := execute(env, sourceToSink, r, time.Second, slog.New(slog.DiscardHandler))
	if !errors.Is(err, errAbandoned) || !errors.Is(err, run.ErrDrained) {
		t.Fatalf("got %v, want that the stream was given up", err)
	}
	if took := time.Since(begun); took > time.Second+drainGrace+5*time.Second {
		t.Errorf("it took %s", took)
	}
	close(release)
	<-returned
}

// A run that is over before the engine took the stream: an input of the engine's core, which doesn't know of runs, is
// stopped all the same.
func TestARunThatEndsAtOnceStopsAnInputOfTheCore(t *testing.T) {
	r := run.New("p")
	r.Drain()
	env := stage(t, r, func(context.Context) error { return nil })
	begun := time.Now()
	err := execute(env, "input:\n  generate: {interval: 1h, mapping: 'root = {}'}\noutput:\n  test_sink: {}\n", r, 10*time.Second, slog.New(slog.DiscardHandler))
	if err != nil || time.Since(begun) > 9*time.Second {
		t.Fatalf("%v after %s, want a stop at once", err, time.Since(begun))
	}
}
