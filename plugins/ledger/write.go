package ledger

import (
	"context"
	"errors"
	"fmt"

	"appliance/internal/bisect"
	"appliance/internal/deadletter"
	"appliance/internal/event"
	"appliance/internal/fault"
	"appliance/internal/pg"
)

// rounds bounds how often a batch is searched for records at fault. One search finds them all; a second is for a
// refusal that only showed once others were gone, and a third would find what changes while we look.
const rounds = 3

// settle makes everything of s durable: letters, then rows and positions. Letters wait until the database answers: the
// batch would come back from an outage with every restart, and leave a copy of each letter every time.
func (o *output) settle(ctx context.Context, s settlement) error {
	if len(s.letters) > 0 {
		if err := o.attempt(ctx, func() error { return o.store.Ping(ctx) }); err != nil {
			return err
		}
	}
	if err := o.publish(ctx, s.letters); err != nil {
		return err
	}
	o.deps.Meter.Retimed(s.retimed)
	written, err := o.write(ctx, s.rows, s.positions)
	for range rounds {
		if err == nil {
			o.count(s.entries, written)
			return nil
		}
		if !o.attributable(err) {
			return err
		}
		if s.entries, err = o.isolate(ctx, s.entries, err); err != nil {
			return err
		}
		// No longer collapsed: a copy of an event that was at fault may be good itself.
		written, err = o.write(ctx, rowsOf(s.entries), s.positions)
	}
	if err != nil {
		return fmt.Errorf("records are refused that were not at fault when tried: %w", err)
	}
	o.count(s.entries, written)
	return nil
}

func (o *output) write(ctx context.Context, rows []pg.Row, positions []pg.Position) (written int, err error) {
	err = o.attempt(ctx, func() error {
		written, err = o.store.Write(ctx, o.deps.Group, rows, positions)
		return err
	})
	return written, err
}

func (o *output) count(entries []entry, written int) {
	types := map[string]int{}
	for i := range entries {
		types[entries[i].row.Type]++
	}
	for name, n := range types {
		o.deps.Meter.Persisted(name, n)
	}
	if n := len(entries) - written; n > 0 {
		o.deps.Meter.Duplicate(n)
	}
}

// ErrNoDeadLetters tells that a record cannot be stored and that the pipeline has nowhere else to put it.
var ErrNoDeadLetters = errors.New("a record cannot be stored and the output has no dead_letters")

// publish returns once the broker has the letters. No transaction is open meanwhile.
func (o *output) publish(ctx context.Context, letters []deadletter.Letter) error {
	if len(letters) == 0 {
		return nil
	}
	if o.letters == nil {
		first := letters[0]
		return fmt.Errorf("%w: %s: %s: %s", ErrNoDeadLetters, first.Ref(), first.Reason, deadletter.Detail(first.Detail))
	}
	if err := o.letters.Publish(ctx, letters); err != nil {
		return fmt.Errorf("publish dead letters: %w", err)
	}
	reasons := map[string]int{}
	for i := range letters {
		reasons[letters[i].Reason]++
	}
	for reason, n := range reasons {
		o.deps.Meter.Poison(reason, n)
	}
	return nil
}

// attempt calls do until it succeeds, its error is not of the moment, or the attempts are used.
func (o *output) attempt(ctx context.Context, do func() error) error {
	atOnce := true
	for n := 1; ; n++ {
		err := do()
		if err == nil || ctx.Err() != nil || errors.Is(err, pg.ErrFenced) || !o.transient(err) {
			return err
		}
		if n >= o.conf.Attempts {
			return fmt.Errorf("attempt %d of %d: %w", n, o.conf.Attempts, err)
		}
		if code, _, _ := pg.Code(err); atOnce && o.conf.Faults.Row(code).AtOnce {
			atOnce = false
			continue
		}
		if waited := o.deps.Wait(ctx, o.conf.RetryDelay); waited != nil {
			return fmt.Errorf("%w, after %w", waited, err)
		}
	}
}

func (o *output) verdict(err error) fault.Verdict {
	code, constraint, ok := pg.Code(err)
	if !ok {
		return fault.Transient
	}
	return o.conf.Faults.Classify(code, constraint)
}

// transient tells whether the same write may succeed later. An event that is stored already is no error of a statement
// that skips those; whoever raised it then, raises it again or does not.
func (o *output) transient(err error) bool {
	v := o.verdict(err)
	return v == fault.Transient || v == fault.Duplicate
}

// attributable tells whether a record of the batch may be to blame.
func (o *output) attributable(err error) bool {
	if errors.Is(err, pg.ErrFenced) {
		return false
	}
	v := o.verdict(err)
	return v == fault.Record || v == fault.NoPartition
}

// isolate finds the entries that the database refuses alone, makes dead letters of them, and returns the others. cause is
// the refusal of all of them together.
func (o *output) isolate(ctx context.Context, entries []entry, cause error) ([]entry, error) {
	var repair error
	if o.verdict(cause) == fault.NoPartition {
		made, err := o.store.EnsureMonths(ctx, o.deps.Now(), o.conf.KeepMonths, o.conf.AheadMonths)
		if made > 0 && err == nil {
			return entries, nil
		}
		repair = err
	}
	search := search{output: o, entries: entries, refusals: map[int]error{}, repair: repair}
	poison, err := bisect.Find(len(entries), func(lo, hi int) (bool, error) { return search.refused(ctx, lo, hi) })
	if err != nil {
		return nil, err
	}
	rest, letters := search.split(poison)
	if err := o.publish(ctx, letters); err != nil {
		return nil, err
	}
	return rest, nil
}

// search is one hunt for the entries at fault.
type search struct {
	*output
	entries  []entry
	refusals map[int]error // why an entry was refused alone
	repair   error         // why partitions could not be made
}

// refused probes a range in a transaction of its own that is taken back.
func (s *search) refused(ctx context.Context, lo, hi int) (bool, error) {
	err := s.attempt(ctx, func() error { return s.store.Try(ctx, rowsOf(s.entries[lo:hi])) })
	switch {
	case err == nil:
		return false, nil
	case !s.attributable(err):
		return false, err
	case hi-lo == 1 && s.verdict(err) == fault.NoPartition && s.maintained(lo):
		return false, errors.Join(fmt.Errorf("no partition for a maintained month, %s: %w",
			s.entries[lo].row.OccurredAt.Format("2006-01"), err), s.repair)
	case hi-lo == 1:
		s.refusals[lo] = err
	}
	return true, nil
}

func (s *search) maintained(i int) bool {
	months := pg.Months(s.deps.Now(), s.conf.KeepMonths, s.conf.AheadMonths)
	from, until := months[0].From, months[len(months)-1].Until
	return fault.Partition(s.entries[i].row.OccurredAt, from, until) != fault.Record
}

// split makes letters of the entries at fault, in offset order, and returns the others. A record of which a processor
// made several messages has one letter.
func (s *search) split(poison []int) (rest []entry, letters []deadletter.Letter) {
	at, guilty := s.deps.Now(), make(map[int]bool, len(poison))
	lettered := make(map[*event.Record]bool, len(poison))
	for _, i := range poison {
		guilty[i] = true
		e := &s.entries[i]
		if lettered[e.record] {
			continue
		}
		lettered[e.record] = true
		reason := event.ReasonUnpersistable
		if s.verdict(s.refusals[i]) == fault.NoPartition {
			reason = event.ReasonOutsidePartitions
		}
		id := &deadletter.Identity{ID: e.row.ID, Type: e.row.Type, Source: e.row.Source}
		letters = append(letters, letter(s.deps.Run.Pipeline, at, e.record, reason, pg.Describe(s.refusals[i]), id))
	}
	for i := range s.entries {
		if !guilty[i] {
			rest = append(rest, s.entries[i])
		}
	}
	sortLetters(letters)
	return rest, letters
}

func rowsOf(entries []entry) []pg.Row {
	rows := make([]pg.Row, len(entries))
	for i := range entries {
		rows[i] = entries[i].row
	}
	return rows
}
