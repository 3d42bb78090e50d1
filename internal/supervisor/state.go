package supervisor

import "fmt"

// State is what a pipeline is doing. The zero State is Stopped.
type State int

// The states. Three of them drain; what for is part of the state, so that one order can overrule another on the way.
const (
	Stopped   State = iota // by order, or at the end of its input; a start begins with a fresh budget
	Starting               // a run was launched and has not reported that it moves records
	Running                // a run moves records
	Pausing                // draining, to be paused
	Stopping               // draining, to be stopped
	Reloading              // draining, to be started again as it is then configured
	Paused                 // by order; out of the group, its start position kept
	Backoff                // failed, waiting for the next run
	Failed                 // failed for good: the budget is used up, only an order starts it again
)

// States lists all states.
func States() []State {
	return []State{Stopped, Starting, Running, Pausing, Stopping, Reloading, Paused, Backoff, Failed}
}

// String returns the word that operators see.
func (s State) String() string {
	switch s {
	case Stopped:
		return "stopped"
	case Starting:
		return "starting"
	case Running:
		return "running"
	case Pausing, Stopping, Reloading:
		return "draining"
	case Paused:
		return "paused"
	case Backoff:
		return "backoff"
	case Failed:
		return "failed"
	default:
		return fmt.Sprintf("state %d", int(s))
	}
}

// Live tells whether a run exists in s: launched, and neither ended nor abandoned.
func (s State) Live() bool {
	switch s {
	case Starting, Running, Pausing, Stopping, Reloading:
		return true
	case Stopped, Paused, Backoff, Failed:
		return false
	default:
		return false
	}
}

// Event is what happens to a pipeline: an order, a report of its run, or of its timer.
type Event int

// Orders, reports and the timer's two outcomes.
const (
	Start  Event = iota // order: run, whatever ended it before
	Stop                // order: drain and stay stopped
	Pause               // order: drain and leave the group, until resumed
	Resume              // order: run again after a pause
	Reload              // order: the configuration changed; never changes whether the pipeline runs

	Ran       // the run moves records
	RunFailed // the run returned, all is settled, its cause is a failure
	Drained   // the run returned, all is settled, its cause is none: asked to, or at the end of its input
	Abandoned // the run did not return within the drain's bound; what it reports later is of no run

	Elapsed   // the wait before the next run is over
	Exhausted // there is no wait: the budget is used up
)

// Events lists all events.
func Events() []Event {
	return []Event{Start, Stop, Pause, Resume, Reload, Ran, RunFailed, Drained, Abandoned, Elapsed, Exhausted}
}

// String returns the event's word.
func (e Event) String() string {
	words := [...]string{
		"start", "stop", "pause", "resume", "reload", "ran", "run-failed", "drained", "abandoned", "elapsed", "exhausted",
	}
	if e < 0 || int(e) >= len(words) {
		return fmt.Sprintf("event %d", int(e))
	}
	return words[e]
}

// Action is what the caller does after a step, before it reports anything else.
type Action int

// The actions. The zero Action is to do nothing.
const (
	Idle       Action = iota // nothing: the state is the answer
	Launch                   // end a wait if there is one, start a run; reports Ran, then RunFailed or Drained
	Drain                    // ask the run to drain; it reports Drained, RunFailed or Abandoned
	Wait                     // ask the Policy: wait and report Elapsed, or report Exhausted at once
	CancelWait               // end the wait; it reports nothing
	GiveUp                   // say it loudly: a failed pipeline stays failed
	Discard                  // a report of a run or a wait that is no longer: log it, change nothing
	Refuse                   // the order does not apply in this state: a conflict, for the one who gave it
)

// String returns the action's word.
func (a Action) String() string {
	words := [...]string{"idle", "launch", "drain", "wait", "cancel-wait", "give-up", "discard", "refuse"}
	if a < 0 || int(a) >= len(words) {
		return fmt.Sprintf("action %d", int(a))
	}
	return words[a]
}
