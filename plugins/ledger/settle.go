package ledger

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"time"

	"appliance/internal/carrier"
	"appliance/internal/deadletter"
	"appliance/internal/event"
	"appliance/internal/intake"
	"appliance/internal/pg"
)

// message is what the engine hands over for one record, as a value.
type message struct {
	carrier carrier.Carrier
	bytes   []byte
	failed  error // what a processor marked it with
}

// entry is a row with the record it was made of.
type entry struct {
	row    pg.Row
	record *event.Record
}

// settlement is what becomes of every record of the batches: each is in entries or in letters, and a processor that
// made several messages of one record can put it into both.
type settlement struct {
	batches   []*intake.Batch
	entries   []entry             // in the order of the messages, copies of one event included
	rows      []pg.Row            // of the entries, each event once
	letters   []deadletter.Letter // in offset order, one for each record at most
	retimed   int                 // rows that share id and source with another, under another time
	positions []pg.Position       // of all spans, also of those without a row
}

// ErrUndecoded tells that no decoder stands between the input and the ledger.
var ErrUndecoded = errors.New("a message was not decoded: put cloudevents_decode ahead of the ledger")

// settle decides about every record of the batches that the messages belong to. It errs with ErrUndecoded only; the
// letters carry pipeline and at.
func settle(messages []message, pipeline string, at time.Time) (settlement, error) {
	s := settling{pipeline: pipeline, at: at, seen: map[*event.Record]bool{}, lettered: map[*event.Record]bool{}}
	s.entries = make([]entry, 0, len(messages))
	for i := range messages {
		if err := s.message(&messages[i]); err != nil {
			return settlement{}, err
		}
	}
	for _, b := range s.batches {
		s.account(b)
	}
	s.rows, s.retimed = distinct(s.entries)
	sortLetters(s.letters)
	return s.settlement, nil
}

// settleDropped decides about a batch none of whose messages arrived.
func settleDropped(b *intake.Batch, pipeline string, at time.Time) settlement {
	s := settling{pipeline: pipeline, at: at, lettered: map[*event.Record]bool{}}
	s.batches = []*intake.Batch{b}
	s.account(b)
	return s.settlement
}

type settling struct {
	settlement
	pipeline string
	at       time.Time
	seen     map[*event.Record]bool // records for which a message arrived
	lettered map[*event.Record]bool
}

func (s *settling) message(m *message) error {
	c := m.carrier
	if c.Event == nil && c.Fault == nil {
		return ErrUndecoded
	}
	if len(s.batches) == 0 || s.batches[len(s.batches)-1] != c.Batch && !slices.Contains(s.batches, c.Batch) {
		s.batches = append(s.batches, c.Batch)
	}
	record := c.Record()
	s.seen[record] = true
	switch {
	case c.Fault != nil:
		s.letter(record, c.Fault.Reason, c.Fault.Detail, c.Event)
	case m.failed != nil:
		s.letter(record, event.ReasonProcessorFailed, m.failed.Error(), c.Event)
	case same(m.bytes, c.Event.Raw):
		s.entries = append(s.entries, entry{row: rowOf(c.Event, record), record: record})
	default:
		s.changed(m, record)
	}
	return nil
}

// changed decodes what a processor made of the message. The hash stays that of the bytes received, by which the row is
// compared with its record.
func (s *settling) changed(m *message, record *event.Record) {
	e, fault := event.DecodeJSON(m.bytes)
	if fault != nil {
		s.letter(record, event.ReasonProcessorFailed, "a processor made no event of it: "+fault.Error(), m.carrier.Event)
		return
	}
	row := rowOf(e, record)
	row.SHA256 = m.carrier.Event.SHA256
	row.Traceparent = cmp.Or(e.Traceparent, m.carrier.Event.Traceparent)
	s.entries = append(s.entries, entry{row: row, record: record})
}

// account adds the batch's positions, and a letter for each record that a processor let vanish.
func (s *settling) account(b *intake.Batch) {
	for i := range b.Spans {
		span := &b.Spans[i]
		s.positions = append(s.positions, pg.Position{
			Topic: span.Topic, TopicID: span.TopicID, Partition: span.Partition, Epoch: span.Epoch, Next: span.Next,
		})
		for r := range span.Records {
			if record := &span.Records[r]; !s.seen[record] {
				s.letter(record, event.ReasonProcessorFailed, "dropped by a processor", nil)
			}
		}
	}
}

func (s *settling) letter(record *event.Record, reason, detail string, e *event.Event) {
	if s.lettered[record] {
		return
	}
	s.lettered[record] = true
	s.letters = append(s.letters, letter(s.pipeline, s.at, record, reason, detail, identityOf(e)))
}

func letter(pipeline string, at time.Time, record *event.Record, reason, detail string, id *deadletter.Identity) deadletter.Letter {
	return deadletter.Letter{Pipeline: pipeline, Reason: reason, Detail: detail, At: at, Record: *record, Event: id}
}

func identityOf(e *event.Event) *deadletter.Identity {
	if e == nil {
		return nil
	}
	return &deadletter.Identity{ID: e.ID, Type: e.Type, Source: e.Source}
}

func rowOf(e *event.Event, r *event.Record) pg.Row {
	return pg.Row{
		OccurredAt: e.OccurredAt, Source: e.Source, ID: e.ID, Type: e.Type, Raw: e.Raw, SHA256: e.SHA256,
		TopicID: r.TopicID, Partition: r.Partition, Offset: r.Offset, Traceparent: e.Traceparent,
	}
}

// same tells whether the message is still the decoder's. Nothing is compared where the bytes are the very ones.
func same(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || bytes.Equal(a, b))
}

// distinct returns each event's first row, and how many of them share id and source with an earlier one: the same event
// as its producer sees it, but stored again since its time differs.
func distinct(entries []entry) (rows []pg.Row, retimed int) {
	type named struct{ source, id string }
	type key struct {
		named
		micros int64
	}
	rows, first := make([]pg.Row, 0, len(entries)), make(map[named]int64, len(entries))
	var others map[key]struct{} // of names that came under several times; mostly there are none
	for i := range entries {
		row := &entries[i].row
		k := key{named{row.Source, row.ID}, row.OccurredAt.UnixMicro()}
		at, again := first[k.named]
		if again && at == k.micros {
			continue
		}
		if again {
			if _, known := others[k]; known {
				continue
			}
			if others == nil {
				others = map[key]struct{}{}
			}
			others[k] = struct{}{}
			retimed++
		} else {
			first[k.named] = k.micros
		}
		rows = append(rows, *row)
	}
	return rows, retimed
}

// sortLetters puts letters into the order in which they are published: that of their records.
func sortLetters(letters []deadletter.Letter) {
	slices.SortStableFunc(letters, func(a, b deadletter.Letter) int {
		return cmp.Or(cmp.Compare(a.Record.Topic, b.Record.Topic), cmp.Compare(a.Record.Partition, b.Record.Partition),
			cmp.Compare(a.Record.Offset, b.Record.Offset))
	})
}
