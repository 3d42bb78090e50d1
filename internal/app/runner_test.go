package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"appliance/internal/run"
	"appliance/internal/supervisor"
)

// scripted is a runner whose runs are functions of the test, and what it was seen to do.
type scripted struct {
	*runner
	t    *testing.T
	stop func()

	mu       sync.Mutex
	launched int
	left     int
	leaveErr error
	gauge    float64
	causes   []string
}

func (s *scripted) SetRunning(_ string, v float64) { s.mu.Lock(); defer s.mu.Unlock(); s.gauge = v }
func (s *scripted) Restart(_, cause string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.causes = append(s.causes, cause)
}

func (s *scripted) counts() (launched, left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.launched, s.left
}

type script func(ctx context.Context, r *run.Run, ran func()) error

// begin runs the loop over the scripts, one per run; the last is repeated.
func begin(t *testing.T, restarts int, scripts ...script) *scripted {
	t.Helper()
	s := &scripted{t: t}
	policy := supervisor.Policy{
		MinBackoff: time.Second, MaxBackoff: 8 * time.Second, Budget: supervisor.Budget{Restarts: restarts, Within: time.Minute},
	}
	s.runner = newRunner("persist", policy, 30*time.Second, slog.New(slog.DiscardHandler),
		clock{Now: time.Now, After: time.After, Random: func() float64 { return 0.5 }}, s)
	s.execute = func(ctx context.Context, r *run.Run, ran func()) error {
		s.mu.Lock()
		n := min(s.launched, len(scripts)-1)
		s.launched++
		s.mu.Unlock()
		return scripts[n](ctx, r, ran)
	}
	s.leave = func(context.Context) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.left++
		return s.leaveErr
	}
	ctx, cancel := context.WithCancel(context.Background())
	var loop sync.WaitGroup
	loop.Go(func() { s.loop(ctx) })
	s.stop = func() { cancel(); loop.Wait() }
	return s
}

func (s *scripted) is(want supervisor.State) {
	s.t.Helper()
	synctest.Wait()
	if got := s.State(); got != want {
		s.t.Fatalf("pipeline is %s, want %s", got, want)
	}
}

// runs until it is asked to drain, and then takes d.
func runs(d time.Duration) script {
	return func(_ context.Context, r *run.Run, ran func()) error {
		ran()
		<-r.Ended()
		time.Sleep(d)
		if cause := r.Cause(); !errors.Is(cause, run.ErrDrained) {
			return cause
		}
		return nil
	}
}

func fails(err error) script {
	return func(_ context.Context, _ *run.Run, ran func()) error { ran(); return err }
}

var errBoom = errors.New("boom")

// TestEachEndOfARun is the whole life of one run, by how it ends and what was ordered meanwhile.
func TestEachEndOfARun(t *testing.T) {
	panics := func(context.Context, *run.Run, func()) error { panic("a component") }
	for name, tc := range map[string]struct {
		first  script
		orders []supervisor.Event
		after  time.Duration
		state  supervisor.State
		runs   int
		left   int
		causes string
	}{
		"goes on until it is told otherwise":                 {runs(0), nil, time.Hour, supervisor.Running, 1, 0, ""},
		"at the end of its input the group is left":          {fails(nil), nil, 0, supervisor.Stopped, 1, 1, ""},
		"stopped, the group is left":                         {runs(time.Second), []supervisor.Event{supervisor.Stop}, time.Minute, supervisor.Stopped, 1, 1, ""},
		"paused, the group is left":                          {runs(time.Second), []supervisor.Event{supervisor.Pause}, time.Minute, supervisor.Paused, 1, 1, ""},
		"reloaded, the group is kept":                        {runs(time.Second), []supervisor.Event{supervisor.Reload}, time.Minute, supervisor.Running, 2, 0, ""},
		"resumed while it pauses, the group is kept":         {runs(time.Second), []supervisor.Event{supervisor.Pause, supervisor.Resume}, time.Minute, supervisor.Running, 2, 0, ""},
		"failed once, it runs again and the group is kept":   {fails(errBoom), nil, 1500 * time.Millisecond, supervisor.Running, 2, 0, "write"},
		"failed, it waits":                                   {fails(errBoom), nil, 500 * time.Millisecond, supervisor.Backoff, 1, 0, "write"},
		"stopped while it waits, the group is left":          {fails(errBoom), []supervisor.Event{supervisor.Stop}, time.Minute, supervisor.Stopped, 1, 1, "write"},
		"paused while it waits, the group is left":           {fails(errBoom), []supervisor.Event{supervisor.Pause}, time.Minute, supervisor.Paused, 1, 1, "write"},
		"started while it waits, it runs at once":            {fails(errBoom), []supervisor.Event{supervisor.Start}, 0, supervisor.Running, 2, 0, "write"},
		"given up by the engine, it runs again":              {fails(errAbandoned), nil, 1500 * time.Millisecond, supervisor.Running, 2, 0, "abandoned"},
		"a panic is a failure like another":                  {panics, nil, 1500 * time.Millisecond, supervisor.Running, 2, 0, "panic"},
		"failed while it drains to stop, it is stopped":      {drainsInto(errBoom), []supervisor.Event{supervisor.Stop}, time.Minute, supervisor.Stopped, 1, 1, ""},
		"failed while it drains to pause, the group is left": {drainsInto(errBoom), []supervisor.Event{supervisor.Pause}, time.Minute, supervisor.Paused, 1, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := begin(t, 3, tc.first, runs(0))
				defer s.end()
				s.order(supervisor.Start)
				synctest.Wait()
				for _, e := range tc.orders {
					<-s.order(e)
				}
				time.Sleep(tc.after)
				s.is(tc.state)
				if launched, left := s.counts(); launched != tc.runs || left != tc.left {
					t.Errorf("%d runs and left %d times, want %d and %d", launched, left, tc.runs, tc.left)
				}
				if got := strings.Join(s.causes, " "); got != tc.causes {
					t.Errorf("restarts because of %q, want %q", got, tc.causes)
				}
				if want := gauge(tc.state == supervisor.Running); s.gauge != want {
					t.Errorf("consume_running is %v", s.gauge)
				}
			})
		})
	}
}

// end stops what still runs, and then the loop.
func (s *scripted) end() {
	<-s.order(supervisor.Stop)
	time.Sleep(time.Minute)
	s.stop()
}

func drainsInto(err error) script {
	return func(_ context.Context, r *run.Run, ran func()) error {
		ran()
		<-r.Ended()
		return err
	}
}

// The budget is used up: the pipeline fails for good, visibly, and its partitions go to other members. The last event of
// the chain doesn't pass through the channel, however full that is.
func TestAUsedUpBudgetFailsForGoodAndLeavesTheGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 2, fails(errBoom))
		defer s.stop()
		s.order(supervisor.Start)
		time.Sleep(time.Minute)
		s.is(supervisor.Failed)
		if launched, left := s.counts(); launched != 3 || left != 1 {
			t.Errorf("%d runs and left %d times, want 3 and 1", launched, left)
		}
		<-s.order(supervisor.Start) // by hand, with a fresh budget
		time.Sleep(time.Minute)
		s.is(supervisor.Failed)
		if launched, _ := s.counts(); launched != 6 {
			t.Errorf("%d runs, want 3 more", launched)
		}
	})
}

func TestTheLastFailureWithAFullQueueOfOrdersBlocksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := make(chan struct{})
		s := begin(t, 0, func(_ context.Context, _ *run.Run, ran func()) error { <-fail; return errBoom })
		defer s.stop()
		hold := make(chan struct{})
		s.clock.Random = func() float64 { <-hold; return 0 } // the loop stands still here, and the queue fills
		<-s.order(supervisor.Start)
		close(fail)
		synctest.Wait()
		var orders sync.WaitGroup
		for range 40 {
			orders.Go(func() { <-s.order(supervisor.Resume) })
		}
		synctest.Wait()
		close(hold)
		orders.Wait()
		s.is(supervisor.Failed)
	})
}

func TestAnOrderToStopOvertakesNoOrderToStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 1, runs(3*time.Second))
		defer s.end()
		s.order(supervisor.Start) // not obeyed yet, perhaps: the state still says stopped
		if err := s.runner.stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.is(supervisor.Stopped)
		if launched, left := s.counts(); launched != 1 || left != 1 {
			t.Errorf("%d runs and left %d times, want one of each", launched, left)
		}
	})
}

func TestStoppingSaysWhatWasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 1, runs(time.Hour))
		s.order(supervisor.Start)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := s.runner.stop(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(fmt.Sprint(err), "draining") {
			t.Errorf("got %v, want the state in which it hangs", err)
		}
		s.mu.Lock()
		s.leaveErr = errBoom
		s.mu.Unlock()
		time.Sleep(2 * time.Hour)
		if err := s.runner.stop(t.Context()); !errors.Is(err, errBoom) {
			t.Errorf("got %v, want what leaving the group said", err)
		}
		s.stop()
	})
}

// An abandoned run that comes back later changes nothing: its report is of no run.
func TestALateReportOfAnAbandonedRunChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 3, fails(errAbandoned), runs(0))
		defer s.end()
		s.order(supervisor.Start)
		synctest.Wait()
		old := s.running()
		time.Sleep(5 * time.Second)
		s.is(supervisor.Running)
		s.report(report{event: supervisor.RunFailed, of: old, cause: errBoom})
		s.is(supervisor.Running)
	})
}
