package health

import (
	"context"
	"fmt"
	"time"
)

// task is one question, asked at a fixed delay. Its functions are called from its loop alone, but for ask, which has a
// goroutine of its own so that a call that ignores its context can't hold the loop.
type task struct {
	interval time.Duration // 0: the prober's
	timeout  time.Duration
	ask      func(ctx context.Context) (deliver func(), err error)
	lost     func(cause error)

	pending chan answer // the call that has not come back, nil where there is none
}

type answer struct {
	deliver func()
	err     error
}

// loop asks once, calls asked, and goes on until ctx ends. The delay is fixed and not the rate: while a dependency is
// away each probe takes its whole timeout, and a rate would queue probes against it.
func (t *task) loop(ctx context.Context, interval time.Duration, asked func()) {
	t.once(ctx)
	asked()
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			t.once(ctx)
			timer.Reset(interval)
		}
	}
}

// once asks and settles the answer. When ctx ended meanwhile nothing is settled: that says nothing about the dependency.
func (t *task) once(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	if t.pending != nil {
		t.overdue(bounded)
	} else {
		t.begin(bounded)
	}
	got, ok := t.await(bounded)
	switch {
	case ctx.Err() != nil:
	case !ok:
		t.fail(fmt.Errorf("no answer within %s", t.timeout))
	case got.err != nil:
		t.fail(got.err)
	default:
		t.settle(got)
	}
}

// overdue waits for a call that outlived its time and drops its answer, which is old; only then it asks anew.
func (t *task) overdue(ctx context.Context) {
	if _, ok := t.await(ctx); ok {
		t.begin(ctx)
	}
}

func (t *task) begin(ctx context.Context) {
	pending := make(chan answer, 1) // one place, so that an answer nobody waits for ends its goroutine
	t.pending = pending
	go func() { pending <- guarded(ctx, t.ask) }()
}

func (t *task) await(ctx context.Context) (answer, bool) {
	select {
	case got := <-t.pending:
		t.pending = nil
		return got, true
	case <-ctx.Done():
		return answer{}, false
	}
}

// settle delivers; a panic of the receiver counts as a lost reading and not as the end of the loop.
func (t *task) settle(got answer) {
	defer func() {
		if caught := recover(); caught != nil {
			t.fail(fmt.Errorf("panic: %v", caught))
		}
	}()
	got.deliver()
}

// fail tells the receiver that nothing arrived. One that panics here too has no third way to be told.
func (t *task) fail(cause error) {
	defer func() { _ = recover() }()
	t.lost(cause)
}

// guarded turns a panic into an error: what escapes here would end the process, or freeze gauge and readiness for good.
func guarded(ctx context.Context, ask func(context.Context) (func(), error)) (got answer) {
	defer func() {
		if caught := recover(); caught != nil {
			got = answer{err: fmt.Errorf("panic: %v", caught)}
		}
	}()
	deliver, err := ask(ctx)
	return answer{deliver, err}
}
