package deadletter

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"appliance/internal/event"
)

// PreviewBytes is how much of a payload a listing shows.
const PreviewBytes = 512

// Listed is an entry as listings show it. Ref is what a replay by refs takes.
type Listed struct {
	Ref            string    `json:"ref"`
	Readable       bool      `json:"readable"`
	Problem        string    `json:"problem,omitempty"`
	Reason         string    `json:"reason,omitempty"`
	Detail         string    `json:"detail,omitempty"`
	Pipeline       string    `json:"pipeline,omitempty"`
	At             string    `json:"at,omitempty"` // when it was refused
	Origin         *Place    `json:"origin,omitempty"`
	Event          *Identity `json:"event,omitempty"` // as far as it is recoverable
	ReplayAttempts int       `json:"replayAttempts"`
	ReplayOf       string    `json:"replayOf,omitempty"`
	Copies         int       `json:"copies"`
	Parts          int       `json:"parts"`
	Payload        *Preview  `json:"payload"` // of the refused record, of a foreign one its own; null where there is none
	DeadLetter     Place     `json:"deadLetter"`
}

// Place is where a record lies.
type Place struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Timestamp string `json:"timestamp,omitempty"`
}

// Preview is the beginning of a payload.
type Preview struct {
	Text      string `json:"text"`  // the first 512 bytes, U+FFFD for those that are not UTF-8
	Bytes     int    `json:"bytes"` // of the whole payload
	Truncated bool   `json:"truncated"`
}

// NewPreview returns the beginning of b, nil where there are no bytes at all. It cuts before it decodes, so that a payload
// of megabytes costs what one of 512 bytes does.
func NewPreview(b []byte) *Preview {
	if b == nil {
		return nil
	}
	return &Preview{
		Text:  strings.ToValidUTF8(string(b[:min(len(b), PreviewBytes)]), "\uFFFD"),
		Bytes: len(b), Truncated: len(b) > PreviewBytes,
	}
}

// List returns what is shown of an entry.
func List(e Entry) Listed {
	out := Listed{
		Ref: e.Ref, Readable: e.Letter != nil, Problem: e.Problem, Copies: e.Copies, Parts: e.Parts,
		DeadLetter: placeOf(e.Message),
	}
	switch {
	case e.Letter != nil:
		l, r := e.Letter, e.Letter.Record
		out.Reason, out.Detail, out.Pipeline, out.At = l.Reason, l.Detail, l.Pipeline, timeText(l.At)
		origin := placeOf(r)
		out.Origin = &origin
		out.Event = Identify(*l)
		out.ReplayAttempts, out.ReplayOf = l.Attempt(), l.ReplayOf()
		out.Payload = NewPreview(r.Value)
	case e.Part != nil:
		p := e.Part
		origin, _ := ParseRef(p.Ref) // was checked when the part was read
		out.Reason, out.Detail, out.Pipeline, out.At = p.Reason, p.Detail, p.Pipeline, timeText(p.At)
		out.Origin = &Place{Topic: origin.Topic, Partition: origin.Partition, Offset: origin.Offset}
		out.Event, out.ReplayAttempts, out.ReplayOf = p.Event.text(maxPartText), p.Attempt, p.ReplayOf
	default:
		out.Payload = NewPreview(e.Message.Value)
	}
	return out
}

func placeOf(r event.Record) Place {
	return Place{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: timeText(r.Timestamp)}
}

// Identify returns who the letter's event says it is, as far as that can be recovered: what the decoder read, else the
// ce_ headers of binary mode, else the members of a payload of structured mode; nil where none of them says a thing. A
// member beyond 1,024 bytes is left out, since a part of it would name another event.
func Identify(l Letter) *Identity {
	for _, found := range []func() *Identity{
		func() *Identity { return l.Event },
		func() *Identity { return fromHeaders(l.Record.Headers) },
		func() *Identity { return fromJSON(l.Record.Value) },
	} {
		if id := found().text(maxPartText); id != nil && *id != (Identity{}) {
			return id
		}
	}
	return nil
}

func fromHeaders(headers []event.Header) *Identity {
	var id Identity
	for _, h := range headers {
		switch strings.ToLower(h.Key) {
		case "ce_id":
			id.ID = string(h.Value)
		case "ce_type":
			id.Type = string(h.Value)
		case "ce_source":
			id.Source = string(h.Value)
		}
	}
	return &id
}

func fromJSON(value []byte) *Identity {
	if !utf8.Valid(value) || loneSurrogate(value) { // encoding/json would put another character there
		return nil
	}
	var members map[string]json.RawMessage // not a struct, which takes ID for id
	if json.Unmarshal(value, &members) != nil {
		return nil
	}
	member := func(name string) string {
		var s string
		if json.Unmarshal(members[name], &s) != nil {
			return ""
		}
		return s
	}
	return &Identity{ID: member("id"), Type: member("type"), Source: member("source")}
}

// Answer is a page as it is shown: of how many records it was computed, and whether there may be more.
type Answer struct {
	Topic     string   `json:"topic"`
	Returned  int      `json:"returned"`
	Scanned   int      `json:"scanned"`
	Truncated bool     `json:"truncated"`
	TimedOut  bool     `json:"timedOut"`
	Newest    bool     `json:"newest"`
	Records   []Listed `json:"records"`
}

// NewAnswer shows a page.
func NewAnswer(topic string, p Page) Answer {
	out := Answer{
		Topic: topic, Returned: len(p.Entries), Scanned: p.Scanned, Truncated: p.Truncated, TimedOut: p.TimedOut, Newest: p.Newest,
		Records: make([]Listed, len(p.Entries)),
	}
	for i, e := range p.Entries {
		out.Records[i] = List(e)
	}
	return out
}
