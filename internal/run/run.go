// Package run holds the handle by which the parts of one running stream agree that it is over.
package run

import (
	"errors"
	"sync"
)

// ErrDrained is the cause of a run that was asked to stop, as opposed to one that failed.
var ErrDrained = errors.New("drained")

// Run is one run of one stream, from start to the return of the engine's Run. It is created by the supervisor and
// closed over by the constructors of the stream's plugins. Safe for concurrent use.
type Run struct {
	Pipeline string // the pipeline's name, for logs, metrics and dead letters

	once  sync.Once
	done  chan struct{}
	cause error
}

// New returns a run that has not ended.
func New(pipeline string) *Run {
	return &Run{Pipeline: pipeline, done: make(chan struct{})}
}

// Fail ends the run because of cause. The first call wins: a later cause, also that of Drain, is dropped.
// Fail does not wait; the input stops handing out batches, and the supervisor stops the stream.
func (r *Run) Fail(cause error) {
	if cause == nil {
		cause = errors.New("run failed without a cause")
	}
	r.end(cause)
}

// Drain ends the run on request: what is in flight finishes, nothing new begins.
func (r *Run) Drain() { r.end(ErrDrained) }

// Ended is closed by the first call of Fail or Drain.
func (r *Run) Ended() <-chan struct{} { return r.done }

// Cause returns nil while the run goes on, ErrDrained after Drain, and otherwise what Fail was given.
func (r *Run) Cause() error {
	select {
	case <-r.done:
		return r.cause
	default:
		return nil
	}
}

func (r *Run) end(cause error) {
	r.once.Do(func() {
		r.cause = cause
		close(r.done)
	})
}
