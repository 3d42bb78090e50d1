package supervisor_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"appliance/internal/supervisor"
)

func start() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

// every returns n failures the given time apart, the last one such a time before the next.
func every(n int, apart time.Duration) (history []time.Time, now time.Time) {
	for i := range n {
		history = append(history, start().Add(time.Duration(i)*apart))
	}
	return history, start().Add(time.Duration(n) * apart)
}

func TestNext(t *testing.T) {
	for name, tc := range map[string]struct {
		before int
		apart  time.Duration
		rnd    float64
		delay  time.Duration
		giveUp bool
	}{
		"the first failure waits min_backoff":                    {0, 0, 0.5, time.Second, false},
		"the second waits twice as long":                         {1, 2 * time.Second, 0.5, 2 * time.Second, false},
		"the fifth waits sixteen times as long":                  {4, 2 * time.Second, 0.5, 16 * time.Second, false},
		"the sixth is bounded by max_backoff":                    {5, 2 * time.Second, 0.5, 30 * time.Second, false},
		"the fiftieth still waits max_backoff":                   {49, 30 * time.Second, 0.5, 30 * time.Second, false},
		"the fifty-first failure has no restart left":            {50, 30 * time.Second, 0.5, 0, true},
		"jitter shortens by a fifth at most":                     {0, 0, 0, 800 * time.Millisecond, false},
		"jitter lengthens by a fifth at most":                    {0, 0, 1, 1200 * time.Millisecond, false},
		"a run that lasted a while starts the delays anew":       {20, 61 * time.Second, 0.5, time.Second, false},
		"such runs still use the budget":                         {50, 61 * time.Second, 0.5, 0, true},
		"a run that lasted the budget's time starts all anew":    {500, 10*time.Minute + 1, 0.5, time.Second, false},
		"runs just short of it use the budget":                   {50, 10 * time.Minute, 0.5, 0, true},
		"a clock that goes backwards counts as failures at once": {3, -time.Second, 0.5, 8 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			history, now := every(tc.before, tc.apart)
			delay, giveUp := supervisor.DefaultPolicy().Next(history, now, tc.rnd)
			if delay != tc.delay || giveUp != tc.giveUp {
				t.Errorf("Next after %d failures %s apart = %s, %t; want %s, %t", tc.before, tc.apart, delay, giveUp, tc.delay, tc.giveUp)
			}
		})
	}
}

func TestNextCountsOnlyTheLastChain(t *testing.T) {
	history, _ := every(60, time.Second)
	now := history[59].Add(time.Hour)
	delay, giveUp := supervisor.DefaultPolicy().Next(history, now, 0.5)
	if delay != time.Second || giveUp {
		t.Errorf("Next an hour after 60 failures = %s, %t; want 1s", delay, giveUp)
	}
}

func TestNextWithoutRestarts(t *testing.T) {
	p := supervisor.DefaultPolicy()
	p.Budget.Restarts = 0
	if _, giveUp := p.Next(nil, start(), 0.5); !giveUp {
		t.Error("a budget of no restarts restarts")
	}
}

// An outage that never ends is given up however the delays fall: the budget is of the chain.
func TestNextEndsEveryEndlessOutage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := supervisor.DefaultPolicy()
		now, history := start(), []time.Time(nil)
		for range p.Budget.Restarts {
			delay, giveUp := p.Next(history, now, rapid.Float64Range(0, 0.999).Draw(t, "rnd"))
			if giveUp {
				t.Fatalf("gave up after %d restarts", len(history))
			}
			if delay < 800*time.Millisecond || delay > 36*time.Second {
				t.Fatalf("delay %s", delay)
			}
			history = append(history, now)
			now = now.Add(delay + time.Duration(rapid.IntRange(0, 20_000).Draw(t, "run"))*time.Millisecond)
		}
		if _, giveUp := p.Next(history, now, 0); !giveUp {
			t.Fatal("the budget was used up and the restarts go on")
		}
	})
}

func TestNextWithTheLongestDelaysDoesNotOverflow(t *testing.T) {
	p := supervisor.Policy{
		MinBackoff: time.Second, MaxBackoff: 24 * time.Hour,
		Budget: supervisor.Budget{Restarts: 1000, Within: time.Hour},
	}
	history, now := every(900, time.Second)
	if delay, _ := p.Next(history, now, 0.9); delay < p.MaxBackoff/2 {
		t.Errorf("delay %s", delay)
	}
}

func TestValidate(t *testing.T) {
	if err := supervisor.DefaultPolicy().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*supervisor.Policy){
		"no min_backoff":             func(p *supervisor.Policy) { p.MinBackoff = 0 },
		"max_backoff below min":      func(p *supervisor.Policy) { p.MaxBackoff = p.MinBackoff - 1 },
		"negative jitter":            func(p *supervisor.Policy) { p.Jitter = -0.1 },
		"jitter that may wait never": func(p *supervisor.Policy) { p.Jitter = 1 },
		"jitter that is no number":   func(p *supervisor.Policy) { p.Jitter = math.NaN() },
		"negative budget":            func(p *supervisor.Policy) { p.Budget.Restarts = -1 },
		"a budget of no time":        func(p *supervisor.Policy) { p.Budget.Within = 0 },
		"a max_backoff beyond sense": func(p *supervisor.Policy) { p.MaxBackoff = math.MaxInt64 },
	} {
		t.Run(name, func(t *testing.T) {
			p := supervisor.DefaultPolicy()
			spoil(&p)
			if p.Validate() == nil {
				t.Errorf("%+v is accepted", p)
			}
		})
	}
}
