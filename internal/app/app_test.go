package app

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"appliance/internal/health"
	"appliance/internal/intake"
	"appliance/internal/meter"
	"appliance/internal/pipeline"
	"appliance/internal/run"
	"appliance/internal/supervisor"
)

// bare is an application of one scripted pipeline and nothing else.
func bare(s *scripted) *App {
	cfg := &pipeline.Config{}
	cfg.Shutdown.Timeout = 40 * time.Second
	res := &resources{}
	a := &App{cfg: cfg, log: slog.New(slog.DiscardHandler), clock: s.clock, res: res, runners: []*runner{s.runner}}
	a.subs = newSubscriptions(res, s.clock, a.log)
	a.prober = health.New(health.Config{Redact: func(text string) string { return text }}, nil, nil)
	a.launched.Store(true)
	return a
}

// Whatever hangs, the shutdown ends with its timeout and names it.
func TestTheShutdownIsBoundedAsAWholeAndNamesWhatIsLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		drains            time.Duration
		startHangs, leaks bool
		took              time.Duration
		want              []string
	}{
		"everything ends by itself":                {drains: time.Second, took: time.Second},
		"a pipeline does not drain":                {drains: time.Hour, took: 40 * time.Second, want: []string{"pipeline persist", "draining"}},
		"the start hangs in a database":            {startHangs: true, took: 40 * time.Second, want: []string{"the start"}},
		"something in the background does not end": {leaks: true, took: 40 * time.Second, want: []string{"background work"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := begin(t, 1, runs(tc.drains))
				a := bare(s)
				<-s.order(supervisor.Start)
				synctest.Wait()
				up, hang := make(chan struct{}), make(chan struct{})
				if !tc.startHangs {
					close(up)
				}
				var background sync.WaitGroup
				if tc.leaks {
					background.Go(func() { <-hang })
				}
				begun := time.Now()
				err := a.bringDown(context.Background(), up, func() {}, &background)
				if took := time.Since(begun); took != tc.took {
					t.Errorf("it took %s, want %s", took, tc.took)
				}
				if (err == nil) != (len(tc.want) == 0) {
					t.Errorf("got %v", err)
				}
				for _, word := range tc.want {
					if err == nil || !strings.Contains(err.Error(), word) {
						t.Errorf("%v does not name %q", err, word)
					}
				}
				close(hang)
				if tc.startHangs {
					close(up)
				}
				time.Sleep(2 * time.Hour)
				s.stop()
			})
		})
	}
}

// A run that begins has the watchdog's whole patience, whatever stood still before it.
func TestARestartedRunHasTheWholePatience(t *testing.T) {
	w, tp := &watch{}, intake.TP{Topic: "t"}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	at, ends := map[intake.TP]int64{tp: 5}, map[intake.TP]int64{tp: 9}
	one, two := run.New("p"), run.New("p")
	for _, step := range []struct {
		of      int
		after   time.Duration
		stalled bool
	}{{1, 0, false}, {1, stallAfter, true}, {2, stallAfter + time.Minute, false}, {2, 2*stallAfter + time.Minute, true}} {
		current := one
		if step.of == 2 {
			current = two
		}
		if got := len(w.look(current, at, ends, now.Add(step.after))) > 0; got != step.stalled {
			t.Errorf("run %d after %s: stalled %t", step.of, step.after, got)
		}
	}
}

// A process whose operators' door broke drains and ends with that error: nobody could see it any more.
func TestABrokenListenerEndsTheProcessWithAnError(t *testing.T) {
	s := begin(t, 1, runs(0))
	s.stop() // the application runs the loop itself
	s.ended = make(chan struct{})
	a := bare(s)
	a.launched.Store(false)
	a.cfg.Admin = &pipeline.Admin{}
	a.meter = meter.New(meter.Identity{})
	server, err := a.newDoor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a.server = server
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server.Start(listener)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "serve admin") {
		t.Fatalf("got %v, want why the door is closed", err)
	}
	if state := s.State(); state != supervisor.Stopped {
		t.Errorf("the pipeline is %s", state)
	}
}
