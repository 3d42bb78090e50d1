package health

import (
	"context"
	"math"
	"time"
)

// Reading is a value that is asked for at the prober's interval and shown elsewhere, mostly as a gauge. It is made by
// Sample or Gauge.
type Reading struct {
	Name    string
	Timeout time.Duration

	read func(ctx context.Context) (deliver func(), err error)
	lost func()
}

// Sample is a reading that hands what read returned to set, and lost to set when read failed, panicked or didn't answer in
// time. An answer that comes after its time is dropped: set is never called with a value older than the last one.
func Sample[T any](name string, timeout time.Duration, read func(context.Context) (T, error), set func(T), lost T) Reading {
	return Reading{
		Name:    name,
		Timeout: timeout,
		read: func(ctx context.Context) (func(), error) {
			value, err := read(ctx)
			return func() { set(value) }, err
		},
		lost: func() { set(lost) },
	}
}

// Gauge is a Sample of a number that becomes NaN when it did not arrive: a gauge frozen at its last value can't be told
// from a consumer that is stuck.
func Gauge(name string, timeout time.Duration, read func(context.Context) (float64, error), set func(float64)) Reading {
	return Sample(name, timeout, read, set, math.NaN())
}
