package meter

import (
	"sync"

	"appliance/internal/event"
)

const (
	other     = "other"
	maxTypes  = 100 // each type is a series for the life of the process, and senders choose it
	maxCauses = 32
	maxLabel  = 256 // bytes; an attribute may have 1,024, a hundred of which would be most of a scrape
)

// label makes any text a label value: valid UTF-8, since the client library panics on another, and bounded.
func label(text string) string { return event.Truncate(text, maxLabel) }

// firsts lets the first max distinct values through and calls every later one "other", so that whoever chooses the values
// doesn't choose the number of series. Safe for concurrent use.
type firsts struct {
	max int

	mu   sync.RWMutex
	seen map[string]struct{}
}

func newFirsts(limit int) *firsts { return &firsts{max: limit, seen: map[string]struct{}{}} }

// admit returns the label value for text.
func (f *firsts) admit(text string) string {
	value := label(text)
	f.mu.RLock()
	_, known := f.seen[value]
	full := len(f.seen) >= f.max
	f.mu.RUnlock()
	switch {
	case known:
		return value
	case full:
		return other
	}
	return f.add(value)
}

func (f *firsts) add(value string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.seen[value]; !known && len(f.seen) >= f.max {
		return other // filled between the two locks
	}
	f.seen[value] = struct{}{}
	return value
}
