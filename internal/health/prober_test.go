package health

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const (
	interval = 20 * time.Second
	timeout  = 5 * time.Second
)

func config(log io.Writer) Config {
	return Config{
		Interval: interval,
		Now:      time.Now,
		Redact:   Redactor(),
		Changed:  func(string, bool) {},
		Log:      slog.New(slog.NewTextHandler(log, nil)),
	}
}

func always(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}

// within moves the bubble's clock and lets everything settle.
func within(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestEveryDependencyStartsDownAndSaysThatItWasNotProbed(t *testing.T) {
	p := New(config(io.Discard), []Dependency{
		{Name: "kafka", Timeout: timeout, Check: always(nil)},
		{Name: "postgresql", Timeout: timeout, Check: always(nil)},
	}, nil)
	got := p.Ready()
	if got.Up || len(got.Dependencies) != 2 {
		t.Fatalf("before the first probe: %+v", got)
	}
	for i, name := range []string{"kafka", "postgresql"} {
		if s := got.Dependencies[i]; s.Name != name || s.Up || s.Detail != "not probed yet" {
			t.Errorf("%s starts as %+v", name, s)
		}
	}
}

func TestWithoutDependenciesThereIsNothingToBeDown(t *testing.T) {
	if got := New(config(io.Discard), nil, nil).Ready(); !got.Up {
		t.Error("not ready without dependencies")
	}
}

func TestStartReturnsWithEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(config(io.Discard), []Dependency{
			{Name: "kafka", Timeout: timeout, Check: always(errors.New("dial tcp: refused"))},
			{Name: "postgresql", Timeout: timeout, Check: always(nil)},
		}, nil)
		p.Start(t.Context())
		defer p.Stop()
		got := p.Ready()
		if got.Up {
			t.Error("ready with the broker away")
		}
		if s := got.Dependencies[0]; s.Up || s.Detail != "dial tcp: refused" {
			t.Errorf("kafka: %+v", s)
		}
		if s := got.Dependencies[1]; !s.Up || s.Detail != "reachable" || s.At.IsZero() {
			t.Errorf("postgresql: %+v", s)
		}
	})
}

func TestAProbeThatHangsIsDownAfterItsTimeoutAndDoesNotDelayTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		hang := make(chan struct{})
		p := New(config(io.Discard), []Dependency{
			{Name: "kafka", Timeout: timeout, Check: func(context.Context) error { <-hang; return nil }}, // ignores its context
			{Name: "postgresql", Timeout: timeout, Check: func(context.Context) error { asked.Add(1); return nil }},
		}, nil)
		begun := time.Now()
		p.Start(t.Context())
		if took := time.Since(begun); took != timeout {
			t.Errorf("Start took %s, want the timeout of one probe", took)
		}
		if s := p.Ready().Dependencies[0]; s.Up || s.Detail != "no answer within 5s" {
			t.Errorf("the hanging one: %+v", s)
		}
		within(10 * interval)
		if n := asked.Load(); n < 10 {
			t.Errorf("the other was asked %d times beside it, want at least 10", n)
		}
		close(hang)
		p.Stop()
	})
}

func TestAHangingProbeIsNotAskedAgainBeforeItCameBackAndItsOldAnswerIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		back := make(chan struct{})
		p := New(config(io.Discard), []Dependency{{Name: "kafka", Timeout: timeout, Check: func(context.Context) error {
			if asked.Add(1) == 1 {
				<-back
				return nil // minutes later: not the answer to what is asked now
			}
			return errors.New("second answer")
		}}}, nil)
		p.Start(t.Context())
		defer p.Stop()
		within(4 * interval)
		if n := asked.Load(); n != 1 {
			t.Errorf("%d calls are out at once", n)
		}
		close(back)
		within(interval + timeout)
		if s := p.Ready().Dependencies[0]; s.Up || s.Detail != "second answer" {
			t.Errorf("after it came back: %+v", s)
		}
	})
}

func TestTheDelayIsFixedAndNotTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun []time.Time
		p := New(config(io.Discard), []Dependency{{Name: "kafka", Timeout: timeout, Check: func(ctx context.Context) error {
			begun = append(begun, time.Now())
			<-ctx.Done()
			return ctx.Err()
		}}}, nil)
		p.Start(t.Context())
		within(2*(interval+timeout) + time.Second)
		p.Stop()
		if len(begun) != 3 {
			t.Fatalf("%d probes, want 3", len(begun))
		}
		for i := 1; i < len(begun); i++ {
			if gap := begun[i].Sub(begun[i-1]); gap != interval+timeout {
				t.Errorf("probe %d began %s after its predecessor, want timeout + interval", i, gap)
			}
		}
	})
}

func TestAPanicIsRecordedAndTheLoopLivesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		p := New(config(io.Discard), []Dependency{{Name: "kafka", Timeout: timeout, Check: func(context.Context) error {
			if asked.Add(1) == 1 {
				panic("nil map")
			}
			return nil
		}}}, nil)
		p.Start(t.Context())
		defer p.Stop()
		if s := p.Ready().Dependencies[0]; s.Up || s.Detail != "panic: nil map" {
			t.Errorf("after the panic: %+v", s)
		}
		within(interval)
		if !p.Ready().Up {
			t.Error("the loop did not go on after the panic")
		}
	})
}

func TestAPanicOfTheReceiverDoesNotEndTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		c := config(io.Discard)
		c.Changed = func(string, bool) { panic("label is not UTF-8") }
		p := New(c, []Dependency{{Name: "kafka", Timeout: timeout, Check: func(context.Context) error { asked.Add(1); return nil }}}, nil)
		p.Start(t.Context())
		defer p.Stop()
		within(2 * interval)
		if n := asked.Load(); n != 3 {
			t.Errorf("asked %d times, want 3", n)
		}
	})
}

func TestADependencyComesAndGoesAndEachChangeIsOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		var away atomic.Bool
		var mu sync.Mutex
		var seen []bool
		c := config(&out)
		c.Changed = func(_ string, up bool) { mu.Lock(); defer mu.Unlock(); seen = append(seen, up) }
		p := New(c, []Dependency{{Name: "postgresql", Timeout: timeout, Check: func(context.Context) error {
			if away.Load() {
				return errors.New("terminating connection: postgres://app:hunter22@db/x")
			}
			return nil
		}}}, nil)
		p.Start(t.Context())
		within(interval)
		away.Store(true)
		within(3 * interval)
		away.Store(false)
		within(interval)
		p.Stop()
		if want := []bool{true, true, false, false, false, true}; !slices.Equal(seen, want) {
			t.Errorf("told %v, want %v", seen, want)
		}
		if n := strings.Count(out.String(), "dependency is down"); n != 1 {
			t.Errorf("%d lines for one outage:\n%s", n, out.String())
		}
		if n := strings.Count(out.String(), "dependency is up"); n != 2 {
			t.Errorf("%d lines for two arrivals:\n%s", n, out.String())
		}
		if strings.Contains(out.String(), "hunter22") {
			t.Errorf("a password in the log:\n%s", out.String())
		}
	})
}

func TestADetailIsBoundedAndOnOneLineWhateverHidesTheSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := config(io.Discard)
		c.Redact = func(text string) string { return strings.ReplaceAll(text, "hush", "(secret)") }
		p := New(c, []Dependency{{Name: "kafka", Timeout: timeout, Check: always(errors.New("hush\n" + strings.Repeat("é", 1000)))}}, nil)
		p.Start(t.Context())
		p.Stop()
		if got := p.Ready().Dependencies[0].Detail; !strings.HasPrefix(got, "(secret) é") || len(got) > 512 {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	})
}

func TestStopSettlesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		p := New(config(io.Discard), []Dependency{{Name: "kafka", Timeout: timeout, Check: func(ctx context.Context) error {
			if asked.Add(1) == 1 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}}}, nil)
		p.Start(t.Context())
		within(interval + time.Second) // the second probe is under way
		p.Stop()
		if !p.Ready().Up {
			t.Error("a probe that was cut by Stop counts against the dependency")
		}
	})
}

func TestAReadingThatDoesNotArriveBecomesNaN(t *testing.T) { // SU-05
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan func() (float64, error), 8)
		var gauge atomic.Uint64
		set := func(v float64) { gauge.Store(math.Float64bits(v)) }
		read := func(ctx context.Context) (float64, error) { return (<-answers)() }
		answers <- func() (float64, error) { return 7, nil }
		p := New(config(io.Discard), nil, []Reading{Gauge("dlq_depth", timeout, read, set)})
		p.Start(t.Context())
		value := func() float64 { return math.Float64frombits(gauge.Load()) }
		if value() != 7 {
			t.Fatalf("first reading: %v", value())
		}
		answers <- func() (float64, error) { return 8, errors.New("not leader") }
		within(interval)
		if !math.IsNaN(value()) {
			t.Errorf("after an error: %v, want NaN", value())
		}
		answers <- func() (float64, error) { return 9, nil }
		within(interval)
		if value() != 9 {
			t.Errorf("after it came back: %v", value())
		}
		within(interval + timeout) // nothing answers
		if !math.IsNaN(value()) {
			t.Errorf("after a timeout: %v, want NaN", value())
		}
		answers <- func() (float64, error) { return 10, nil } // the late answer
		synctest.Wait()
		if !math.IsNaN(value()) {
			t.Errorf("a late answer was shown: %v", value())
		}
		answers <- func() (float64, error) { return 11, nil }
		within(interval)
		if value() != 11 {
			t.Errorf("after the late answer was dropped: %v", value())
		}
		p.Stop()
	})
}

func TestALostSampleOfRowsIsNoRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rows atomic.Pointer[[]int]
		var fail atomic.Bool
		p := New(config(io.Discard), nil, []Reading{Sample("consume_group_lag", timeout, func(context.Context) ([]int, error) {
			if fail.Load() {
				return []int{1, 2}, errors.New("half of it")
			}
			return []int{1}, nil
		}, func(v []int) { rows.Store(&v) }, nil)})
		p.Start(t.Context())
		if len(*rows.Load()) != 1 {
			t.Errorf("rows: %v", *rows.Load())
		}
		fail.Store(true)
		within(interval)
		p.Stop()
		if *rows.Load() != nil {
			t.Errorf("rows of a failed reading: %v", *rows.Load())
		}
	})
}

func TestADependencyMayBeAskedMoreOftenThanTheReadings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probes, readings := 0, 0
		p := New(config(io.Discard),
			[]Dependency{{Name: "kafka", Timeout: timeout, Interval: interval / 4, Check: func(context.Context) error { probes++; return nil }}},
			[]Reading{Sample("lag", timeout, func(context.Context) (int, error) { readings++; return 0, nil }, func(int) {}, 0)})
		p.Start(t.Context())
		within(2*interval + interval/8)
		p.Stop()
		if probes != 9 || readings != 3 {
			t.Errorf("%d probes and %d readings, want 9 and 3", probes, readings)
		}
	})
}
