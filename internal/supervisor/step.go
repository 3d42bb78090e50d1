package supervisor

// Step returns the state after an event and what to do about it. It is total: a report that no longer concerns the state
// is discarded, an order that does not apply is refused, and both leave the state as it is. An order that is already
// fulfilled is accepted and idle.
//
// Each state's function names all events, so that a new one is decided for each; those it only discards come last.
func Step(s State, e Event) (State, Action) {
	switch s {
	case Stopped:
		return stopped(e)
	case Starting, Running:
		return live(s, e)
	case Pausing:
		return pausing(e)
	case Stopping:
		return stopping(e)
	case Reloading:
		return reloading(e)
	case Paused:
		return paused(e)
	case Backoff:
		return backoff(e)
	case Failed:
		return failed(e)
	default:
		return s, Refuse
	}
}

func stopped(e Event) (State, Action) {
	switch e {
	case Start:
		return Starting, Launch
	case Stop, Reload:
		return Stopped, Idle
	case Pause, Resume: // a stop is an order of its own: it is ended by a start, and a pause would weaken it
		return Stopped, Refuse
	case Ran, RunFailed, Drained, Abandoned, Elapsed, Exhausted:
	}
	return Stopped, Discard
}

func live(s State, e Event) (State, Action) {
	switch e {
	case Start, Resume:
		return s, Idle
	case Stop:
		return Stopping, Drain
	case Pause:
		return Pausing, Drain
	case Reload:
		return Reloading, Drain
	case Ran:
		return Running, Idle
	case RunFailed, Abandoned: // a run is abandoned here by its watchdog
		return Backoff, Wait
	case Drained: // at the end of its input, unasked
		return Stopped, Idle
	case Elapsed, Exhausted:
	}
	return s, Discard
}

// pausing: a failure on the way ends the run as a drain does. What was not written is still in Kafka.
func pausing(e Event) (State, Action) {
	switch e {
	case Start, Resume:
		return Reloading, Idle
	case Stop:
		return Stopping, Idle
	case Pause, Reload, Ran:
		return Pausing, Idle
	case RunFailed, Drained, Abandoned:
		return Paused, Idle
	case Elapsed, Exhausted:
	}
	return Pausing, Discard
}

func stopping(e Event) (State, Action) {
	switch e {
	case Start:
		return Reloading, Idle
	case Stop, Reload, Ran:
		return Stopping, Idle
	case Pause, Resume:
		return Stopping, Refuse
	case RunFailed, Drained, Abandoned:
		return Stopped, Idle
	case Elapsed, Exhausted:
	}
	return Stopping, Discard
}

// reloading: a run that failed or was abandoned on the way costs a restart like any other, or a reload in a loop would
// hide a failing sink from the budget.
func reloading(e Event) (State, Action) {
	switch e {
	case Start, Resume, Reload, Ran:
		return Reloading, Idle
	case Stop:
		return Stopping, Idle
	case Pause:
		return Pausing, Idle
	case Drained:
		return Starting, Launch
	case RunFailed, Abandoned:
		return Backoff, Wait
	case Elapsed, Exhausted:
	}
	return Reloading, Discard
}

func paused(e Event) (State, Action) {
	switch e {
	case Start, Resume:
		return Starting, Launch
	case Stop:
		return Stopped, Idle
	case Pause, Reload:
		return Paused, Idle
	case Ran, RunFailed, Drained, Abandoned, Elapsed, Exhausted:
	}
	return Paused, Discard
}

// backoff: who starts or reloads a pipeline that waits means now.
func backoff(e Event) (State, Action) {
	switch e {
	case Start, Reload, Elapsed:
		return Starting, Launch
	case Resume:
		return Backoff, Idle
	case Stop:
		return Stopped, CancelWait
	case Pause:
		return Paused, CancelWait
	case Exhausted:
		return Failed, GiveUp
	case Ran, RunFailed, Drained, Abandoned:
	}
	return Backoff, Discard
}

func failed(e Event) (State, Action) {
	switch e {
	case Start, Reload: // with a fresh budget: a reload brings what may mend it
		return Starting, Launch
	case Stop:
		return Stopped, Idle
	case Pause, Resume:
		return Failed, Refuse
	case Ran, RunFailed, Drained, Abandoned, Elapsed, Exhausted:
	}
	return Failed, Discard
}
