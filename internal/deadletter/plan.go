package deadletter

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"appliance/internal/event"
)

// SkipReason says why a dead letter is not replayed.
type SkipReason string

// The reasons, closed.
const (
	SkipUndecodable     SkipReason = "undecodable"      // the record of the topic is no dead letter that can be read
	SkipForeignTopic    SkipReason = "foreign-topic"    // it claims to come from a topic that this consumer does not own
	SkipBudgetExhausted SkipReason = "budget-exhausted" // it was replayed as often as one record may be
)

// Skip is a dead letter that the plan declines.
type Skip struct {
	Ref    string     `json:"ref"`
	Reason SkipReason `json:"reason"`
	Detail string     `json:"detail"`
}

// Replay is a record to be published.
type Replay struct {
	Ref     string       // of the letter that it is made of
	Attempt int          // that it carries
	Record  event.Record // topic and partition are where it came from; its offset is still the letter's
}

// Intent is what a replay would do, or did up to where it stopped.
type Intent struct {
	Publish []Replay // in this order
	Skipped []Skip   // newest first
}

// Bounds limits a replay.
type Bounds struct {
	Topics      []string // that the consumer owns: where a record may go back to
	MaxAttempts int      // replays that one record may survive
}

// Plan decides what becomes of each entry of a page; a dry run shows what it returns, and a replay publishes it. Select
// takes the newest, but published is the oldest first, and within a partition of origin in the order of its offsets: what
// belongs to one key arrives in the order in which it first did.
func Plan(entries []Entry, b Bounds) Intent {
	var out Intent
	for _, e := range entries {
		if skip := b.skip(e); skip != nil {
			out.Skipped = append(out.Skipped, *skip)
			continue
		}
		attempt := e.Letter.Attempt() + 1
		out.Publish = append(out.Publish, Replay{Ref: e.Ref, Attempt: attempt, Record: replayed(*e.Letter, attempt)})
	}
	slices.Reverse(out.Publish)
	inOrderOfOrigin(out.Publish)
	return out
}

// ForeignTopic tells whether a topic that came with input is none of those that the consumer owns. Without this check a
// record of the dead-letter topic could make the consumer write to any topic that it names.
func ForeignTopic(topic string, owned []string) bool { return !slices.Contains(owned, topic) }

func (b Bounds) skip(e Entry) *Skip {
	s := &Skip{Ref: e.Ref}
	switch {
	case e.Letter == nil:
		s.Reason, s.Detail = SkipUndecodable, e.Problem
	case ForeignTopic(e.Letter.Record.Topic, b.Topics):
		s.Reason, s.Detail = SkipForeignTopic, fmt.Sprintf("topic %s is none of %s", e.Letter.Record.Topic, strings.Join(b.Topics, ", "))
	case e.Letter.Attempt() == Exhausted:
		s.Reason, s.Detail = SkipBudgetExhausted, "its "+HeaderAttempt+" cannot be read, so that it may have been replayed any number of times"
	case e.Letter.Attempt() >= b.MaxAttempts:
		s.Reason, s.Detail = SkipBudgetExhausted, fmt.Sprintf("replayed %d times of at most %d", e.Letter.Attempt(), b.MaxAttempts)
	default:
		return nil
	}
	return s
}

// replayed is the letter's record byte for byte, with the two transport headers in place of such as it had. Its timestamp
// is not taken along: a topic whose retention has passed would delete the record at once.
func replayed(l Letter, attempt int) event.Record {
	r := event.Record{
		Topic: l.Record.Topic, Partition: l.Record.Partition, Offset: l.Record.Offset, Key: l.Record.Key, Value: l.Record.Value,
	}
	for _, h := range l.Record.Headers {
		if h.Key != HeaderAttempt && h.Key != HeaderReplayOf {
			r.Headers = append(r.Headers, h)
		}
	}
	r.Headers = append(r.Headers,
		event.Header{Key: HeaderAttempt, Value: []byte(strconv.Itoa(attempt))},
		event.Header{Key: HeaderReplayOf, Value: []byte(l.Ref())})
	return r
}

// inOrderOfOrigin puts the records of each partition of origin into the order of their offsets, in the places that they
// have together.
func inOrderOfOrigin(replays []Replay) {
	type partition struct {
		topic  string
		number int32
	}
	places := map[partition][]int{}
	for i, r := range replays {
		p := partition{r.Record.Topic, r.Record.Partition}
		places[p] = append(places[p], i)
	}
	before := slices.Clone(replays)
	for _, at := range places {
		from := slices.Clone(at)
		slices.SortStableFunc(from, func(a, b int) int { return cmp.Compare(before[a].Record.Offset, before[b].Record.Offset) })
		for i := range at {
			replays[at[i]] = before[from[i]]
		}
	}
}

// ErrIncomplete is wrapped by Refusal.
var ErrIncomplete = errors.New("nothing was published: refs are all or nothing")

// Refusal returns why a request cannot be committed, nil where it can: records that are named are replayed all or not at
// all, and "the newest" is not decided from a read that did not reach them. It wraps ErrIncomplete or ErrTimedOut.
func Refusal(q Request, p Page, intent Intent) error {
	if q.Refs == nil {
		if p.TimedOut {
			return fmt.Errorf("%w: nothing was published", ErrTimedOut)
		}
		return nil
	}
	var why []string
	if len(p.Missing) > 0 {
		why = append(why, "missing "+strings.Join(p.Missing, ", "))
	}
	for _, s := range intent.Skipped {
		why = append(why, fmt.Sprintf("skipped %s (%s: %s)", s.Ref, s.Reason, s.Detail))
	}
	if why == nil {
		return nil
	}
	text := strings.Join(why, "; ")
	switch {
	case len(p.Missing) > 0 && p.TimedOut:
		return fmt.Errorf("%w: %s; the read ended before its end, so that what is missing may be there: %w", ErrIncomplete, text, ErrTimedOut)
	case p.Truncated:
		text += fmt.Sprintf("; what is missing may be older than the %d records that were read", p.Scanned)
	}
	return fmt.Errorf("%w: %s", ErrIncomplete, text)
}

// ErrTimedOut is wrapped by Refusal where the read did not reach the end in time.
var ErrTimedOut = errors.New("reading the dead-letter topic took longer than the poll timeout, and its newest records were not read")
