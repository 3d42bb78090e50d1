package bench

import (
	"slices"
	"time"
)

// Result is one measurement, in the words that are compared from one build to the next.
//
// Rates are of rows that SQL counted. seconds runs from the start of the child process to the last row's ingested_at, by
// the server's clock, so that starting and joining the group count; the rate without them is beside it. The floor and the
// program are measured in turns, and each figure is the median of its rounds: of two, their mean.
type Result struct {
	Bench                string  `json:"bench"`
	Broker               string  `json:"broker"`
	Events               int     `json:"events"`
	Seconds              float64 `json:"seconds"`
	EventsPerSecond      float64 `json:"events_per_second"`
	FloorEventsPerSecond float64 `json:"floor_events_per_second"` // of each round the best of 1, 2 and 4 connections
	Ratio                float64 `json:"ratio"`
	Lost                 int64   `json:"lost"`           // events without a row, all rounds together
	Duplicates           int64   `json:"duplicates"`     // rows beyond the first of a source and id
	PeakRSSBytes         int64   `json:"peak_rss_bytes"` // VmHWM, the highest of the rounds; 0 where there is no /proc
	LoadAverage          float64 `json:"load_average"`   // of one minute, before anything was done

	StartupSeconds           float64 `json:"startup_seconds"` // to the first row
	EventsPerSecondFromFirst float64 `json:"events_per_second_from_first_row"`
	RatioFromFirst           float64 `json:"ratio_from_first_row"`
	Rounds                   []Round `json:"rounds"`
}

// Round is one floor and, after it, one run of the program.
type Round struct {
	Floor []FloorRun `json:"floor"`
	Run   ProgramRun `json:"run"`
}

// FloorRun is one COPY of all rows.
type FloorRun struct {
	Connections     int     `json:"connections"`
	Seconds         float64 `json:"seconds"`
	EventsPerSecond float64 `json:"events_per_second"`
}

// ProgramRun is one run of the program, from its start to the end of its drain.
type ProgramRun struct {
	Seconds        float64 `json:"seconds"`
	StartupSeconds float64 `json:"startup_seconds"`
	DrainSeconds   float64 `json:"drain_seconds"` // from SIGTERM to its exit
	Rows           int64   `json:"rows"`
	Lost           int64   `json:"lost"`
	Duplicates     int64   `json:"duplicates"`
	PeakRSSBytes   int64   `json:"peak_rss_bytes"`
}

// summarise computes a Result of rounds over so many events.
func summarise(broker string, events int, load float64, rounds []Round) Result {
	r := Result{Bench: "persist", Broker: broker, Events: events, LoadAverage: load, Rounds: rounds}
	var floors, seconds, startups, fromFirst []float64
	for _, round := range rounds {
		best := 0.0
		for _, f := range round.Floor {
			best = max(best, f.EventsPerSecond)
		}
		floors = append(floors, best)
		seconds, startups = append(seconds, round.Run.Seconds), append(startups, round.Run.StartupSeconds)
		fromFirst = append(fromFirst, round.Run.Seconds-round.Run.StartupSeconds)
		r.Lost += round.Run.Lost
		r.Duplicates += round.Run.Duplicates
		r.PeakRSSBytes = max(r.PeakRSSBytes, round.Run.PeakRSSBytes)
	}
	r.Seconds, r.StartupSeconds, r.FloorEventsPerSecond = median(seconds), median(startups), median(floors)
	r.EventsPerSecond = perSecond(events, r.Seconds)
	r.EventsPerSecondFromFirst = perSecond(events, median(fromFirst))
	if r.FloorEventsPerSecond > 0 {
		r.Ratio = r.EventsPerSecond / r.FloorEventsPerSecond
		r.RatioFromFirst = r.EventsPerSecondFromFirst / r.FloorEventsPerSecond
	}
	return r
}

// median is the middle value, and of an even number the mean of the middle two.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

func perSecond(events int, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(events) / seconds
}

func secondsBetween(from, to time.Time) float64 { return max(0, to.Sub(from).Seconds()) }
