package supervisor_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"appliance/internal/supervisor"
)

// transitions is the whole machine: a line an event, a column a state. "=" stays; "x" refuses, "." discards, both staying.
const transitions = `
           Stopped         Starting        Running         Pausing        Stopping       Reloading       Paused          Backoff            Failed
start      Starting:launch =               =               Reloading      Reloading      =               Starting:launch Starting:launch    Starting:launch
stop       =               Stopping:drain  Stopping:drain  Stopping       =              Stopping        Stopped         Stopped:cancel     Stopped
pause      x               Pausing:drain   Pausing:drain   =              x              Pausing         =               Paused:cancel      x
resume     x               =               =               Reloading      x              =               Starting:launch =                  x
reload     =               Reloading:drain Reloading:drain =              =              =               =               Starting:launch    Starting:launch
ran        .               Running         =               =              =              =               .               .                  .
run-failed .               Backoff:wait    Backoff:wait    Paused         Stopped        Backoff:wait    .               .                  .
drained    .               Stopped         Stopped         Paused         Stopped        Starting:launch .               .                  .
abandoned  .               Backoff:wait    Backoff:wait    Paused         Stopped        Backoff:wait    .               .                  .
elapsed    .               .               .               .              .              .               .               Starting:launch    .
exhausted  .               .               .               .              .              .               .               Failed:give-up     .
`

func names() map[string]supervisor.State {
	return map[string]supervisor.State{
		"Stopped": supervisor.Stopped, "Starting": supervisor.Starting, "Running": supervisor.Running,
		"Pausing": supervisor.Pausing, "Stopping": supervisor.Stopping, "Reloading": supervisor.Reloading,
		"Paused": supervisor.Paused, "Backoff": supervisor.Backoff, "Failed": supervisor.Failed,
	}
}

func actions() map[string]supervisor.Action {
	return map[string]supervisor.Action{
		"": supervisor.Idle, "launch": supervisor.Launch, "drain": supervisor.Drain, "wait": supervisor.Wait,
		"cancel": supervisor.CancelWait, "give-up": supervisor.GiveUp,
	}
}

func TestStep(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(transitions), "\n")
	header, seen := strings.Fields(lines[0]), 0
	for i, e := range supervisor.Events() {
		cells := strings.Fields(lines[i+1])
		if cells[0] != e.String() {
			t.Fatalf("line %d is of %s, want %s", i+1, cells[0], e)
		}
		for j, column := range header {
			s, cell := names()[column], cells[j+1]
			state, action := s, supervisor.Idle
			switch cell {
			case "=":
			case "x":
				action = supervisor.Refuse
			case ".":
				action = supervisor.Discard
			default:
				word, verb, _ := strings.Cut(cell, ":")
				state, action = names()[word], actions()[verb]
			}
			gotState, gotAction := supervisor.Step(s, e)
			if gotState != state || gotAction != action {
				t.Errorf("Step(%s, %s) = %s, %s; want %s, %s", column, e, gotState, gotAction, state, action)
			}
			seen++
		}
	}
	if want := len(supervisor.States()) * len(supervisor.Events()); seen != want {
		t.Errorf("%d pairs checked, want %d", seen, want)
	}
}

func TestStepOfWhatIsNoStateRefuses(t *testing.T) {
	if s, a := supervisor.Step(supervisor.State(99), supervisor.Start); s != 99 || a != supervisor.Refuse {
		t.Errorf("Step(99, start) = %s, %s", s, a)
	}
	for _, s := range supervisor.States() {
		if got, a := supervisor.Step(s, supervisor.Event(99)); got != s || a != supervisor.Discard {
			t.Errorf("Step(%s, 99) = %s, %s", s, got, a)
		}
	}
}

// world is the caller of Step as it must behave: it holds at most one run and at most one wait.
type world struct {
	state     supervisor.State
	run, wait bool
}

func (w *world) feed(e supervisor.Event) error {
	if (e == supervisor.RunFailed || e == supervisor.Drained || e == supervisor.Abandoned) && w.run {
		w.run = false
	}
	if e == supervisor.Elapsed || e == supervisor.Exhausted {
		w.wait = false
	}
	var action supervisor.Action
	w.state, action = supervisor.Step(w.state, e)
	switch action {
	case supervisor.Launch:
		if w.run {
			return fmt.Errorf("%s launched a second run", e)
		}
		w.run, w.wait = true, false
	case supervisor.Drain:
		if !w.run {
			return fmt.Errorf("%s drains no run", e)
		}
	case supervisor.Wait:
		w.wait = true
	case supervisor.CancelWait:
		if !w.wait {
			return fmt.Errorf("%s cancels no wait", e)
		}
		w.wait = false
	case supervisor.Idle, supervisor.GiveUp, supervisor.Discard, supervisor.Refuse:
	}
	if w.state.Live() != w.run {
		return fmt.Errorf("%s: state %s with run %t", e, w.state, w.run)
	}
	if (w.state == supervisor.Backoff) != w.wait {
		return fmt.Errorf("%s: state %s with wait %t", e, w.state, w.wait)
	}
	return nil
}

// possible returns the events that can happen: orders at any time, reports of a run or a wait while there is one.
func (w *world) possible() []supervisor.Event {
	events := []supervisor.Event{supervisor.Start, supervisor.Stop, supervisor.Pause, supervisor.Resume, supervisor.Reload}
	if w.run {
		events = append(events, supervisor.Ran, supervisor.RunFailed, supervisor.Drained, supervisor.Abandoned)
	}
	if w.wait {
		events = append(events, supervisor.Elapsed, supervisor.Exhausted)
	}
	return events
}

func TestStepNeverHoldsTwoRunsNorLosesOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			e := rapid.SampledFrom(w.possible()).Draw(t, "event")
			if err := w.feed(e); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestAStartAlwaysEndsInARun(t *testing.T) {
	for _, s := range supervisor.States() {
		w := &world{state: s, run: s.Live(), wait: s == supervisor.Backoff}
		if err := w.feed(supervisor.Start); err != nil {
			t.Fatal(err)
		}
		if w.state == supervisor.Reloading {
			if err := w.feed(supervisor.Drained); err != nil {
				t.Fatal(err)
			}
		}
		if w.state != supervisor.Starting && w.state != supervisor.Running {
			t.Errorf("started when %s: %s", s, w.state)
		}
	}
}

func TestWords(t *testing.T) {
	for _, s := range supervisor.States() {
		if s.String() == "" || strings.HasPrefix(s.String(), "state ") {
			t.Errorf("state %d has no word", int(s))
		}
	}
	for _, e := range supervisor.Events() {
		if e.String() == "" || strings.HasPrefix(e.String(), "event ") {
			t.Errorf("event %d has no word", int(e))
		}
	}
	for a := supervisor.Idle; a <= supervisor.Refuse; a++ {
		if a.String() == "" || strings.HasPrefix(a.String(), "action ") {
			t.Errorf("action %d has no word", int(a))
		}
	}
	for _, word := range []string{supervisor.State(-1).String(), supervisor.Event(-1).String(), supervisor.Action(99).String()} {
		if !strings.Contains(word, " ") {
			t.Errorf("an impossible value reads %q", word)
		}
	}
}
