package deadletter

import (
	"cmp"
	"slices"
	"time"

	"appliance/internal/event"
)

// Entry is one dead letter of a topic, or a record of the topic that is none.
type Entry struct {
	Ref     string  // origin of the letter's record; of a foreign record its own coordinates
	Letter  *Letter // nil where it cannot be read
	Part    *Part   // where parts of it are lacking or damaged: one of them, which says all but the record
	Problem string  // why there is no letter
	Copies  int     // how often the letter is among what was read; the newest counts
	Parts   int     // messages that make the newest copy

	Message event.Record // of the dead-letter topic: the newest one that belongs to the newest copy

	age  time.Time
	rank int // 0 is the newest
}

// Reason is the letter's reason, "" where it is unknown.
func (e Entry) Reason() string {
	switch {
	case e.Letter != nil:
		return e.Letter.Reason
	case e.Part != nil:
		return e.Part.Reason
	default:
		return ""
	}
}

// recordKey names a record for good: a topic that was made anew gives the same refs to other records.
type recordKey struct {
	ref     string
	topicID [16]byte
}

// pileKey names one envelope that was cut into parts.
type pileKey struct {
	ref    string
	sha256 [32]byte
}

// gather makes entries of records, newest first: parts are joined, and copies of one letter collapse to the newest that
// can be read.
func gather(sightings []sighting) []Entry {
	var entries []*Entry
	piles, parts := map[pileKey]*Entry{}, map[pileKey][]Part{}
	for i, s := range sightings {
		reading := Read(s.record.Value, s.record.Headers)
		if p := reading.Part; p != nil {
			key := pileKey{p.Ref, p.SHA256}
			parts[key] = append(parts[key], *p)
			if piles[key] != nil {
				continue
			}
		}
		e := &Entry{
			Ref: Ref(s.record.Topic, s.record.Partition, s.record.Offset), Letter: reading.Letter, Part: reading.Part,
			Problem: reading.Problem, Copies: 1, Parts: 1,
			Message: *s.record, age: s.age, rank: i,
		}
		switch {
		case reading.Letter != nil:
			e.Ref = reading.Letter.Ref()
		case reading.Part != nil:
			e.Ref = reading.Part.Ref
			piles[pileKey{e.Ref, e.Part.SHA256}] = e
		}
		entries = append(entries, e)
	}
	for key, e := range piles {
		e.join(parts[key])
	}
	return collapse(entries)
}

// join makes the parts' entry a letter, or says why that cannot be.
func (e *Entry) join(parts []Part) {
	e.Parts = e.Part.Parts
	whole, err := Join(parts)
	if err != nil {
		e.Problem = Detail(err.Error())
		return
	}
	reading := Read(whole, nil) // the envelope is a message like any other, but for its header
	switch {
	case reading.Letter == nil:
		e.Problem = Detail("its parts make no dead letter: " + reading.Problem)
	case reading.Letter.Ref() != e.Ref:
		e.Problem = Detail("its parts make a dead letter of " + reading.Letter.Ref())
	default:
		e.Letter, e.Part = reading.Letter, nil
	}
}

// collapse counts the copies of a letter on its newest. A copy that lacks parts counts on one that can be read.
func collapse(entries []*Entry) []Entry {
	kept := map[recordKey]*Entry{}
	newest := map[string]*Entry{}
	var left []*Entry
	keep := func(e *Entry, key recordKey, known *Entry) {
		if known != nil {
			known.Copies++
			return
		}
		kept[key] = e
		if newest[key.ref] == nil {
			newest[key.ref] = e
		}
		left = append(left, e)
	}
	for _, e := range entries {
		if e.Letter != nil {
			key := recordKey{e.Ref, e.Letter.Record.TopicID}
			keep(e, key, kept[key])
		}
	}
	for _, e := range entries {
		switch {
		case e.Letter != nil:
		case e.Part != nil:
			keep(e, recordKey{ref: e.Ref}, newest[e.Ref])
		default:
			left = append(left, e)
		}
	}
	slices.SortFunc(left, func(a, b *Entry) int { return cmp.Compare(a.rank, b.rank) })
	out := make([]Entry, len(left))
	for i, e := range left {
		out[i] = *e
	}
	return out
}
