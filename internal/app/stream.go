package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"appliance/internal/run"
)

// errAbandoned is the end of a run whose engine did not come back within its drain timeout and a grace. What it had is not
// put back, since it may still be writing; the process that starts next finds it uncommitted.
var errAbandoned = errors.New("the stream did not end in time and was given up")

// failTimeout is what a failed run gets to end its other writes: they are already of no use if they hang.
const failTimeout = 10 * time.Second

// execute builds a stream from yaml in env and runs it until the run ends, by itself, on request or by failure. When it
// returns without errAbandoned the engine is done with every batch.
func execute(env *service.Environment, yaml string, r *run.Run, drain time.Duration, log *slog.Logger) (err error) {
	defer func() { // a stream whose later component could not be made leaves its input reading: it must get nothing
		if err != nil {
			r.Fail(err)
		}
		r.Drain()
	}()
	stream, err := build(env, yaml, log)
	if err != nil {
		return fmt.Errorf("build stream: %w", err)
	}
	returned := make(chan error, 1)
	go func() { returned <- runStream(stream) }()
	select {
	case err := <-returned:
		return ending(r, err)
	case <-r.Ended():
	}
	bound := drain
	if !errors.Is(r.Cause(), run.ErrDrained) {
		bound = failTimeout
	}
	return stop(stream, returned, r, bound)
}

// errPanic is the end of a run whose component panicked.
var errPanic = errors.New("panic")

// runStream runs the stream. Its components are constructed here, so that a constructor's panic can be caught; those of
// the engine's own goroutines can't, which is why ours catch theirs.
func runStream(stream *service.Stream) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return stream.Run(context.Background())
}

func build(env *service.Environment, yaml string, log *slog.Logger) (*service.Stream, error) {
	b := env.NewStreamBuilder()
	b.SetLogger(log)
	b.SetThreads(1) // more would let messages of one batch overtake each other
	b.SetEnvVarLookupFunc(func(string) (string, bool) { return "", false })
	if err := b.SetYAML(yaml); err != nil {
		return nil, err
	}
	return b.Build()
}

// stop lets the stream finish what it has: the input hands out nothing more, so it ends by itself once the acks are in.
// StopWithin is what cancels a write that hangs.
func stop(stream *service.Stream, returned <-chan error, r *run.Run, bound time.Duration) error {
	given := make(chan struct{})
	defer close(given)
	go stopWithin(stream, given, bound)
	timer := time.NewTimer(bound + drainGrace)
	defer timer.Stop()
	select {
	case err := <-returned:
		return ending(r, err)
	case <-timer.C:
		return fmt.Errorf("%w (last cause: %w)", errAbandoned, r.Cause())
	}
}

// stopWithin asks until the stream takes it: one that was told to run a moment ago refuses to stop, and an input of the
// engine's core would then run for ever.
func stopWithin(stream *service.Stream, given <-chan struct{}, bound time.Duration) {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	over := time.NewTimer(bound)
	defer over.Stop()
	for stream.StopWithin(bound) != nil {
		select {
		case <-given:
			return
		case <-over.C:
			return
		case <-again.C:
		}
	}
}

// ending says what the end of a run means: no error for a drain and for an input that is at its end.
func ending(r *run.Run, err error) error {
	switch cause := r.Cause(); {
	case errors.Is(cause, run.ErrDrained):
		return nil
	case cause != nil:
		return cause
	default:
		return err
	}
}
