package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"appliance/internal/run"
	"appliance/internal/supervisor"
)

// drainGrace is what a run gets beyond its drain timeout before it is given up: the engine cancels writes at three
// quarters of the timeout and may take until its end to come back.
const drainGrace = 5 * time.Second

// runner obeys the supervisor's state machine for one pipeline: it launches runs, drains them, waits between them, and
// gives up. Every report goes through one goroutine, so there is one state.
type runner struct {
	name   string
	policy supervisor.Policy
	drain  time.Duration
	log    *slog.Logger
	clock  clock
	meter  runMeter

	// execute runs the stream until it ended and everything it had is settled. It calls ran once records can move.
	execute func(ctx context.Context, r *run.Run, ran func()) error
	// leave gives back what outlives a run. It is called when the pipeline comes to rest (stopped, paused or failed), before
	// anybody sees that it has: a member of the group that reads nothing would keep its partitions from the others.
	leave func(ctx context.Context) error

	events chan report
	ended  chan struct{} // closed when the loop is over

	mu       sync.Mutex
	state    supervisor.State
	since    time.Time
	cause    error // of the last failure
	current  *run.Run
	restarts []time.Time
	total    int
	left     error // of the last leaving: what Kafka was not told
	changed  chan struct{}
}

// report is one event, of the run it comes from; nil for an order.
type report struct {
	event  supervisor.Event
	of     *run.Run
	cause  error
	obeyed chan<- struct{} // closed once the step is done; nil where nobody waits for it
}

type runMeter interface {
	SetRunning(pipeline string, value float64)
	Restart(pipeline, cause string)
}

func newRunner(name string, policy supervisor.Policy, drain time.Duration, log *slog.Logger, c clock, m runMeter) *runner {
	return &runner{
		name: name, policy: policy, drain: drain, log: log.With(slog.String("pipeline", name)), clock: c, meter: m,
		events: make(chan report, 16), ended: make(chan struct{}), changed: make(chan struct{}), since: c.Now(),
	}
}

// order gives the supervisor an order. It doesn't wait for its effect; the channel is closed once the order was obeyed or
// refused.
func (r *runner) order(e supervisor.Event) <-chan struct{} {
	obeyed := make(chan struct{})
	r.report(report{event: e, obeyed: obeyed})
	return obeyed
}

// stop drains the pipeline, waits for the end of it and returns what it left behind. The order counts before the state does:
// one that was given to start may still be on its way.
func (r *runner) stop(ctx context.Context) error {
	select {
	case <-r.order(supervisor.Stop):
	case <-r.ended:
	case <-ctx.Done():
		return fmt.Errorf("still %s: %w", r.State(), ctx.Err())
	}
	if err := r.await(ctx, supervisor.Stopped); err != nil {
		return fmt.Errorf("still %s: %w", r.State(), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left
}

// loop obeys until ctx ends. It is called once. When it returns, the run that it left behind, if any, is abandoned.
func (r *runner) loop(ctx context.Context) {
	defer close(r.ended)
	var wait <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-r.events:
			wait = r.obey(ctx, e, wait)
		case <-wait:
			wait = r.obey(ctx, report{event: supervisor.Elapsed}, nil)
		}
	}
}

// obey makes one step and does what it asks for. It returns the wait that is under way afterwards.
func (r *runner) obey(ctx context.Context, e report, wait <-chan time.Time) <-chan time.Time {
	if e.of != nil && e.of != r.running() {
		r.log.Info("late report of an abandoned run", slog.String("event", e.event.String()))
		return wait
	}
	if e.obeyed != nil {
		defer close(e.obeyed)
	}
	action := r.step(e)
	switch action {
	case supervisor.Launch:
		r.launch(ctx)
		return nil
	case supervisor.Drain:
		r.drainRun(ctx)
	case supervisor.Wait:
		return r.wait(ctx, e.cause)
	case supervisor.CancelWait:
		return nil
	case supervisor.GiveUp:
		r.log.Error("pipeline failed for good", slog.Any("cause", r.lastCause()), slog.Int("restarts", len(r.restarts)))
	case supervisor.Discard, supervisor.Refuse:
		r.log.Warn("order refused", slog.String("event", e.event.String()), slog.String("state", r.State().String()))
	case supervisor.Idle:
	}
	return wait
}

// step changes the state. Only the loop calls it, so that between its two looks at the state nothing has changed.
func (r *runner) step(e report) supervisor.Action {
	before := r.State()
	next, action := supervisor.Step(before, e.event)
	left := r.left
	if next != before && rests(next) {
		bounded, cancel := context.WithTimeout(context.Background(), drainGrace)
		defer cancel()
		left = r.leave(bounded)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state, r.left = next, left
	if action == supervisor.Launch && !before.Live() && before != supervisor.Backoff {
		r.restarts = nil // who starts a pipeline by hand gives it a fresh budget
	}
	if e.cause != nil {
		r.cause = e.cause
	}
	if next != before {
		r.log.Info("pipeline changed state", slog.String("state", next.String()), slog.String("after", e.event.String()))
		r.since = r.clock.Now()
		close(r.changed)
		r.changed = make(chan struct{})
	}
	r.meter.SetRunning(r.name, gauge(next == supervisor.Running))
	return action
}

// rests tells whether a pipeline in this state reads nothing until somebody orders it to.
func rests(s supervisor.State) bool { return !s.Live() && s != supervisor.Backoff }

func gauge(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

func (r *runner) launch(ctx context.Context) {
	current := run.New(r.name)
	r.mu.Lock()
	r.current = current
	r.mu.Unlock()
	go func() {
		err := r.executed(ctx, current)
		switch {
		case errors.Is(err, errAbandoned):
			r.report(report{event: supervisor.Abandoned, of: current, cause: err})
		case err != nil:
			r.report(report{event: supervisor.RunFailed, of: current, cause: err})
		default:
			r.report(report{event: supervisor.Drained, of: current})
		}
	}()
}

// executed makes a panic the failure of one run, so that it doesn't end the process with all its pipelines.
func (r *runner) executed(ctx context.Context, current *run.Run) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return r.execute(ctx, current, func() { r.report(report{event: supervisor.Ran, of: current}) })
}

// report puts an event before the loop. It waits while the loop is behind, and no longer than the loop lives.
func (r *runner) report(e report) {
	select {
	case r.events <- e:
	case <-r.ended:
	}
}

func (r *runner) drainRun(context.Context) {
	if current := r.running(); current != nil {
		current.Drain()
	}
}

// wait asks the policy how long to wait before the next run, and records the restart.
func (r *runner) wait(ctx context.Context, cause error) <-chan time.Time {
	now := r.clock.Now()
	delay, giveUp := r.policy.Next(r.restarts, now, r.clock.Random())
	if giveUp {
		return r.obey(ctx, report{event: supervisor.Exhausted}, nil) // not by way of the channel, which only this goroutine empties
	}
	r.mu.Lock()
	r.restarts = append(r.restarts, now)
	if keep := r.policy.Budget.Restarts + 1; len(r.restarts) > keep {
		r.restarts = r.restarts[len(r.restarts)-keep:]
	}
	r.total++
	r.mu.Unlock()
	r.meter.Restart(r.name, causeClass(cause))
	r.log.Warn("run failed, restarting", slog.Any("cause", cause), slog.Duration("after", delay))
	return r.clock.After(delay)
}

func (r *runner) running() *run.Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

// State returns the state now.
func (r *runner) State() supervisor.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

func (r *runner) lastCause() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cause
}

// await waits until the state is one of those asked for.
func (r *runner) await(ctx context.Context, which ...supervisor.State) error {
	for {
		r.mu.Lock()
		state, changed := r.state, r.changed
		r.mu.Unlock()
		if slices.Contains(which, state) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// clock is time and chance, given by main.
type clock struct {
	Now    func() time.Time
	After  func(time.Duration) <-chan time.Time
	Random func() float64 // in [0, 1)
}
