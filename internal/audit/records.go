package audit

import (
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

// question is a record that only a row of the same event can account for.
type question struct {
	book     *book
	topicID  [16]byte
	part     int32
	offset   int64
	identity pg.Identity
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
	if fault != nil {
		p.book.hint(r.Offset, "no event, and no dead letter: "+fault.Error())
		return open, nil
	}
	open = append(open, question{
		book: p.book, topicID: p.topicID, part: p.partition, offset: r.Offset,
		identity: pg.Identity{OccurredAt: e.OccurredAt, Source: e.Source, ID: e.ID},
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
	switch {
	case s == nil:
		q.book.hint(q.offset, fmt.Sprintf("event %q of source %q has no row", q.identity.ID, q.identity.Source))
	case s.TopicID == q.topicID && s.Partition == q.part && s.Offset == q.offset:
		q.book.row(q.offset)
	default:
		q.book.duplicate(q.offset)
	}
}
