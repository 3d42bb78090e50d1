// Package supervisor decides whether a pipeline runs, and when it runs again after it failed. It has no clock, no
// randomness and no goroutine: the one that runs streams feeds it events and obeys its actions.
package supervisor

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Policy says when a failed run is followed by another, and when by none.
type Policy struct {
	MinBackoff time.Duration // before the first restart
	MaxBackoff time.Duration // the doubling ends here
	Jitter     float64       // a delay is spread by ± this share of it, so that replicas do not return in step
	Budget     Budget
}

// Budget bounds a chain of restarts. A run that lasted Within ends the chain, and with it the count. The count is over
// the chain and not over the last Within: with delays of MaxBackoff, 50 restarts never fit in 10 minutes, and a pipeline
// whose database never comes back would try for ever and look like one without traffic.
type Budget struct {
	Restarts int           // how many restarts a chain may have; 0 means that the first failure is final
	Within   time.Duration // how long a run must last to end the chain
}

// DefaultPolicy returns the policy of a pipeline without a restart block.
func DefaultPolicy() Policy {
	return Policy{
		MinBackoff: time.Second,
		MaxBackoff: 30 * time.Second,
		Jitter:     0.2,
		Budget:     Budget{Restarts: 50, Within: 10 * time.Minute},
	}
}

// Validate returns why the policy cannot be followed, nil where it can.
func (p Policy) Validate() error {
	switch {
	case p.MinBackoff <= 0:
		return fmt.Errorf("min_backoff %s is not positive", p.MinBackoff)
	case p.MaxBackoff < p.MinBackoff:
		return fmt.Errorf("max_backoff %s is less than min_backoff %s", p.MaxBackoff, p.MinBackoff)
	case p.MaxBackoff > 24*time.Hour: // also keeps twice of it a duration
		return fmt.Errorf("max_backoff %s is more than a day", p.MaxBackoff)
	case math.IsNaN(p.Jitter) || p.Jitter < 0 || p.Jitter >= 1:
		return fmt.Errorf("jitter %v is not within 0 to 1", p.Jitter)
	case p.Budget.Restarts < 0:
		return fmt.Errorf("restarts %d is negative", p.Budget.Restarts)
	case p.Budget.Within <= 0:
		return errors.New("within is not positive")
	}
	return nil
}

// Next decides after a failure at now. history holds the failures before it, oldest first, since the pipeline was last
// started by an order; rnd is uniform in [0, 1). It returns how long to wait before the next run, or that the chain of
// restarts has used the budget and no run follows.
//
// The delay doubles with each failure in a row, from MinBackoff to MaxBackoff, and starts anew after a run that lasted a
// while: one failure and the next more than twice MaxBackoff apart.
func (p Policy) Next(history []time.Time, now time.Time, rnd float64) (delay time.Duration, giveUp bool) {
	if inRow(history, now, p.Budget.Within) >= p.Budget.Restarts {
		return 0, true
	}
	return p.backoff(inRow(history, now, 2*p.MaxBackoff), rnd), false
}

// inRow counts the failures before now that follow one another at most gap apart.
func inRow(history []time.Time, now time.Time, gap time.Duration) int {
	n := 0
	for i := len(history) - 1; i >= 0 && now.Sub(history[i]) <= gap; i-- {
		now = history[i]
		n++
	}
	return n
}

// backoff returns the delay after n failures in a row before this one.
func (p Policy) backoff(n int, rnd float64) time.Duration {
	delay := p.MinBackoff
	for range n {
		if delay > p.MaxBackoff/2 {
			delay = p.MaxBackoff
			break
		}
		delay *= 2
	}
	return time.Duration(float64(delay) * (1 + p.Jitter*(2*rnd-1)))
}
