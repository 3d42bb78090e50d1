// Package deadletter holds what becomes of a record that cannot be stored: a CloudEvent that keeps the record as it was
// received, byte for byte, beside the reason why, and the reader that gets it back. Nothing here waits; the broker's
// offset for a letter is another room's business.
package deadletter

import (
	"errors"
	"fmt"
	"net/url"
	"time"
	"unicode/utf8"

	"appliance/internal/event"
)

const (
	// Type is the CloudEvents type of a whole letter.
	Type = "appliance.deadletter.v1"
	// PartType is the CloudEvents type of one part of a letter that is too large for one message.
	PartType = "appliance.deadletter.part.v1"
	// ContentType is the content-type header of every message produced: structured mode.
	ContentType = "application/cloudevents+json"
)

// ErrInvalid is wrapped by Encode where a letter lacks what its readers need: a mistake of the caller, not of the record.
var ErrInvalid = errors.New("invalid dead letter")

// Letter is one record that could not be stored, and why.
type Letter struct {
	Pipeline string       // the pipeline that refused it
	Reason   string       // of the closed list
	Detail   string       // one sentence for people; Encode redacts and trims it as Detail does
	At       time.Time    // when it was refused
	Record   event.Record // what was received, untouched; timestamps have Kafka's resolution of a millisecond
	Event    *Identity    // who the event says it is, nil where that is unreadable
}

// Identity is what names an event. A member is empty where the record does not say it.
type Identity struct {
	ID     string `json:"id,omitempty"`
	Type   string `json:"type,omitempty"`
	Source string `json:"source,omitempty"`
}

// Message is one Kafka message to be produced onto the dead-letter topic.
type Message struct {
	Key, Value []byte
	Headers    []event.Header
}

// framing is what a record batch of format v2 adds around a single record: 61 bytes of batch header, and for the record
// at most 6 varints and 2 for each header. Rounded up, since a message over the broker's limit is refused as a whole.
const framing = 128

// Size bounds from above the bytes that the message takes on the wire, alone in an uncompressed batch: the figure that
// the broker compares with max.message.bytes.
func (m Message) Size() int {
	size := framing + len(m.Key) + len(m.Value)
	for _, h := range m.Headers {
		size += len(h.Key) + len(h.Value) + 10
	}
	return size
}

// Ref returns the origin of the record, which is the letter's id and its messages' key.
func (l Letter) Ref() string {
	return Ref(l.Record.Topic, l.Record.Partition, l.Record.Offset)
}

// Attempt returns how often the record has been replayed, as ReplayAttempt does.
func (l Letter) Attempt() int { return ReplayAttempt(l.Record.Headers) }

// ReplayOf returns the ref of the letter whose replay the record is, "" where it is none.
func (l Letter) ReplayOf() string { return ReplayOf(l.Record.Headers) }

// Source returns the CloudEvents source of a pipeline's letters, /appliance/<pipeline>.
func Source(pipeline string) string { return "/appliance/" + url.PathEscape(pipeline) }

// validate refuses what no reader could take back: everything else about a letter is data and is kept.
func (l Letter) validate() error {
	switch {
	case l.Pipeline == "" || !utf8.ValidString(l.Pipeline):
		return fmt.Errorf("%w: pipeline %q", ErrInvalid, l.Pipeline)
	case l.Reason == "" || !utf8.ValidString(l.Reason):
		return fmt.Errorf("%w: reason %q", ErrInvalid, l.Reason)
	case !validTopic(l.Record.Topic) || l.Record.Partition < 0 || l.Record.Offset < 0:
		return fmt.Errorf("%w: origin %q", ErrInvalid, l.Ref())
	case l.At.UTC().Year() < 1 || l.At.UTC().Year() > 9999:
		return fmt.Errorf("%w: time of year %d", ErrInvalid, l.At.UTC().Year())
	}
	return nil
}
