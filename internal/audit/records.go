package audit

import (
	"bytes"
	"context"
	"fmt"

	"appliance/internal/broker"
	"appliance/internal/event"
	"appliance/internal/intake"
	"appliance/internal/offset"
	"appliance/internal/pg"
)

// lookups is how many identities are asked for in one statement.
const lookups = 1000

// question is a record that only a row of the same event can account for, or whose row has to be compared with it.
type question struct {
	book     *book
	topicID  [16]byte
	part     int32
	offset   int64
	identity pg.Identity
	sha256   [32]byte // of the record's value
}

// readRecords reads what is not proven yet. A partition's ranges are read one after another, those of all partitions at
// once.
func (a *auditor) readRecords(ctx context.Context) error {
	left, total, done := map[intake.TP][]offset.Log{}, int64(0), int64(0)
	for tp, p := range a.parts {
		if ranges := p.book.unproven(); len(ranges) > 0 {
			left[tp] = ranges
			for _, r := range ranges {
				total += r.End - r.Start
			}
		}
	}
	var open []question
	for len(left) > 0 {
		round := map[intake.TP]offset.Log{}
		for tp, ranges := range left {
			round[tp] = ranges[0]
			if left[tp] = ranges[1:]; len(left[tp]) == 0 {
				delete(left, tp)
			}
		}
		err := broker.Read(ctx, a.src.Events, a.ids, round, func(r event.Record) error {
			if done++; done%often == 0 {
				a.opts.Progress("records", done, total)
			}
			var err error
			open, err = a.record(ctx, &r, open)
			return err
		})
		if err != nil {
			return fmt.Errorf("records: %w", err)
		}
	}
	return a.answer(ctx, open)
}

// record enters one record, and adds it to the questions where its event has to be looked for.
func (a *auditor) record(ctx context.Context, r *event.Record, open []question) ([]question, error) {
	p := a.parts[intake.TP{Topic: r.Topic, Partition: r.Partition}]
	if p == nil || !p.book.read(r) {
		return open, nil
	}
	e, fault := event.DecodeRecord(r)
	switch {
	case fault != nil && p.book.isRow(r.Offset):
		p.book.differs(r.Offset, "there is a row, and the record is no event: "+fault.Error())
		return open, nil
	case fault != nil:
		p.book.hint(r.Offset, "no event, and no dead letter: "+fault.Error())
		return open, nil
	}
	open = append(open, question{
		book: p.book, topicID: p.topicID, part: p.partition, offset: r.Offset,
		identity: pg.Identity{OccurredAt: e.OccurredAt, Source: e.Source, ID: e.ID},
		sha256:   e.SHA256,
	})
	if len(open) < lookups {
		return open, nil
	}
	return open[:0], a.answer(ctx, open)
}

// answer looks the events up. A row of the record's own coordinates was written since the rows were read.
func (a *auditor) answer(ctx context.Context, open []question) error {
	if len(open) == 0 {
		return nil
	}
	identities := make([]pg.Identity, len(open))
	for i, q := range open {
		identities[i] = q.identity
	}
	stored, err := a.src.Database.Lookup(ctx, identities)
	if err != nil {
		return err
	}
	for i, q := range open {
		q.settle(stored[i])
	}
	return nil
}

// settle enters what the row of its event says about a record, nil where there is none. A row of the record's own
// coordinates was written since the rows were read.
func (q question) settle(s *pg.Stored) {
	own, known := s != nil && s.TopicID == q.topicID && s.Partition == q.part && s.Offset == q.offset, q.book.isRow(q.offset)
	equal := s != nil && bytes.Equal(s.SHA256, q.sha256[:])
	name := fmt.Sprintf("event %q of source %q", q.identity.ID, q.identity.Source)
	switch {
	case known && !own:
		q.book.differs(q.offset, "the row of this origin is of another event than the record, "+name)
	case s == nil:
		q.book.hint(q.offset, name+" has no row")
	case !own:
		q.book.duplicate(q.offset, equal)
		if !equal {
			q.book.inform(q.offset, fmt.Sprintf("%s has a row of other bytes, which came from %s", name, originOf(s)))
		}
	default:
		if !known {
			q.book.row(q.offset)
		}
		if q.book.deep && !equal {
			q.book.differs(q.offset, name+": the row's payload_sha256 is not that of the record")
		}
	}
}

// originOf names a row's origin as far as it has one.
func originOf(s *pg.Stored) string {
	if s.Partition < 0 {
		return "no record"
	}
	return fmt.Sprintf("partition %d, offset %d", s.Partition, s.Offset)
}
