package offset

import "time"

// Stall watches positions for one that stands still while there is something to read.
type Stall[K comparable] struct {
	// After is how long a position may stand still. It must be longer than the slowest batch takes.
	After time.Duration

	since map[K]stand
}

type stand struct {
	at    int64
	since time.Time
}

// Look takes the positions and ends of now and returns the keys that have stood behind their end, at one position, for
// After. A key that is not among the positions any more is forgotten.
func (s *Stall[K]) Look(positions, ends map[K]int64, now time.Time) []K {
	next := make(map[K]stand, len(positions))
	var stalled []K
	for key, at := range positions {
		end, known := ends[key]
		if !known || at >= end {
			continue // caught up, or nothing is known of its end
		}
		was, ok := s.since[key]
		if !ok || was.at != at {
			was = stand{at, now}
		}
		next[key] = was
		if now.Sub(was.since) >= s.After {
			stalled = append(stalled, key)
		}
	}
	s.since = next
	return stalled
}
