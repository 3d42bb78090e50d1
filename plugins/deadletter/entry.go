package deadletter

import (
	"slices"
	"time"

	"appliance/internal/carrier"
	"appliance/internal/deadletter"
	"appliance/internal/event"
	"appliance/internal/intake"
	"appliance/internal/pg"
)

// work is what one write does.
type work struct {
	batches   []*intake.Batch
	entries   []pg.DeadLetter // one a record for which a message arrived
	positions []pg.Position   // of all spans, also of those whose messages were dropped
}

// plan reads the records behind the messages and accounts for all of their batches.
func plan(carriers []carrier.Carrier, now time.Time) work {
	var w work
	seen := make(map[*event.Record]bool, len(carriers))
	for _, c := range carriers {
		if !slices.Contains(w.batches, c.Batch) {
			w.batches = append(w.batches, c.Batch)
			w.positions = append(w.positions, positions(c.Batch)...)
		}
		if record := c.Record(); !seen[record] {
			seen[record] = true
			w.entries = append(w.entries, entry(record, c.Batch.Spans[c.Span].TopicID, now))
		}
	}
	return w
}

func positions(b *intake.Batch) []pg.Position {
	out := make([]pg.Position, len(b.Spans))
	for i := range b.Spans {
		s := &b.Spans[i]
		out[i] = pg.Position{Topic: s.Topic, TopicID: s.TopicID, Partition: s.Partition, Epoch: s.Epoch, Next: s.Next}
	}
	return out
}

// entry is the index's row of one record of the dead-letter topic. It is total: what is no dead letter is a row too, under
// the coordinates that it has itself.
func entry(r *event.Record, topicID [16]byte, now time.Time) pg.DeadLetter {
	e := pg.DeadLetter{
		DLQTopicID: topicID, DLQPartition: r.Partition, DLQOffset: r.Offset, Part: 1, Parts: 1, Seen: seenAt(r.Timestamp, now),
	}
	switch reading := deadletter.Read(r.Value, r.Headers); {
	case reading.Letter != nil:
		ofLetter(&e, reading.Letter)
	case reading.Part != nil:
		ofPart(&e, reading.Part)
	default:
		e.Ref, e.Problem = deadletter.Ref(r.Topic, r.Partition, r.Offset), reading.Problem
		e.Fingerprint = deadletter.Fingerprint("", reading.Problem)
	}
	return e
}

func ofLetter(e *pg.DeadLetter, l *deadletter.Letter) {
	e.Ref, e.Readable = l.Ref(), true
	e.OriginTopic, e.OriginTopicID = l.Record.Topic, l.Record.TopicID
	e.OriginPartition, e.OriginOffset = l.Record.Partition, l.Record.Offset
	e.Pipeline, e.Reason, e.Detail = l.Pipeline, l.Reason, l.Detail
	e.Fingerprint = deadletter.Fingerprint(l.Reason, l.Detail)
	e.Attempt, e.ReplayOf = l.Attempt(), l.ReplayOf()
	identity(e, l.Event)
}

// ofPart: a part says of its letter all but the record, so that each of them gives the row its content.
func ofPart(e *pg.DeadLetter, p *deadletter.Part) {
	origin, _ := deadletter.ParseRef(p.Ref) // was checked when the part was read
	e.Ref, e.Readable = p.Ref, true
	e.OriginTopic, e.OriginPartition, e.OriginOffset = origin.Topic, origin.Partition, origin.Offset
	e.Pipeline, e.Reason, e.Detail = p.Pipeline, p.Reason, p.Detail
	e.Fingerprint = deadletter.Fingerprint(p.Reason, p.Detail)
	e.Attempt, e.ReplayOf = p.Attempt, p.ReplayOf
	e.Part, e.Parts = p.Part, p.Parts
	identity(e, p.Event)
}

func identity(e *pg.DeadLetter, id *deadletter.Identity) {
	if id != nil {
		e.EventID, e.EventType, e.EventSource = id.ID, id.Type, id.Source
	}
}

// seenAt is the record's timestamp where that can be: a foreign producer may write any 64 bits there, of which PostgreSQL
// holds few, and one from the future would lead every list for years.
func seenAt(timestamp, now time.Time) time.Time {
	if timestamp.Unix() <= 0 || timestamp.After(now) {
		return now
	}
	return timestamp
}
