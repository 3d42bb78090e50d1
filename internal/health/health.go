// Package health keeps what is known about the things this process depends on, so that a readiness probe reads fields and
// never opens a connection: a handler that asked the broker would turn the probe into load on what already struggles, and
// its own latency into the thing that fails it. Stale and instant beats fresh and hanging.
package health

import "time"

// Status is what the last probe of one dependency found.
type Status struct {
	Name   string
	Up     bool
	Detail string    // why it is down, or "reachable": redacted, valid UTF-8, at most 512 bytes
	At     time.Time // when the probe ended, zero before the first
}

// Report is the state of all dependencies, in the order in which they were declared.
type Report struct {
	Up           bool // every dependency is up; true where there is none
	Dependencies []Status
}

const (
	notProbed = "not probed yet"
	reachable = "reachable"
)

// down is where every dependency starts: a process that has not proved that it reaches what it needs isn't ready.
func down(name string) *Status { return &Status{Name: name, Detail: notProbed} }

// report sums up statuses.
func report(statuses []Status) Report {
	all := Report{Up: true, Dependencies: statuses}
	for _, s := range statuses {
		all.Up = all.Up && s.Up
	}
	return all
}
