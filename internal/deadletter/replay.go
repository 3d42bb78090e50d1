package deadletter

import (
	"math"

	"appliance/internal/event"
)

const (
	// HeaderAttempt counts on a replayed record how often it has been replayed. It carries no ce_ prefix: under the Kafka
	// binding that would make it an attribute of the event, and another row.
	HeaderAttempt = "x-worxbend-replay-attempt"
	// HeaderReplayOf names on a replayed record the ref of the letter that it was made of.
	HeaderReplayOf = "x-worxbend-replay-of"
	// Exhausted is the attempt of a record whose counter cannot be read: more than any budget allows.
	Exhausted = math.MaxInt32
)

// ReplayAttempt returns how often a record with these headers has been replayed: 0 where no header says so, the highest
// where several do. A header that is present but unreadable counts as Exhausted, never as zero: who cannot tell how
// often a record went round does not send it round again.
func ReplayAttempt(headers []event.Header) int {
	attempt := 0
	for _, h := range headers {
		if h.Key != HeaderAttempt {
			continue
		}
		n, ok := parseNumber(string(h.Value), 32)
		if !ok {
			return Exhausted
		}
		attempt = max(attempt, int(n))
	}
	return attempt
}

// ReplayOf returns the value of the last x-worxbend-replay-of header that is a ref, "" where there is none.
func ReplayOf(headers []event.Header) string {
	ref := ""
	for _, h := range headers {
		if h.Key != HeaderReplayOf {
			continue
		}
		if _, err := ParseRef(string(h.Value)); err == nil {
			ref = string(h.Value)
		}
	}
	return ref
}
