package event

import "time"

// Event is one CloudEvent 1.0 as decoded from a Kafka record or from JSON.
type Event struct {
	ID, Source, Type         string
	Subject, DataContentType string    // "" where the event has none
	Time                     string    // as it was written
	OccurredAt               time.Time // Time as an instant: UTC, truncated to microseconds, what keys and partitions derive from
	Raw                      []byte    // the whole event as one JSON object, the row's raw column
	SHA256                   [32]byte  // of the record's value as it was received
	Traceparent              string    // a valid W3C traceparent, or ""
}

// Fault says why a record is no event that can be stored: its dead letter's reason and detail.
type Fault struct {
	Reason    string // of the closed list of reasons
	Attribute string // the attribute at fault, "" where it is none in particular
	Detail    string // one sentence, valid UTF-8, at most 1,024 bytes
}

// Error gives reason and detail.
func (f *Fault) Error() string { return f.Reason + ": " + f.Detail }
