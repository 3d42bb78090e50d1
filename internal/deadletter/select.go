package deadletter

import (
	"cmp"
	"slices"
	"time"

	"appliance/internal/event"
)

// Tail is the newest end of one partition of a dead-letter topic, as far as it was read.
type Tail struct {
	Partition        int32
	Start, From, End int64          // first offset kept, first one read, and the end as it was before the read began
	Whole            bool           // read up to End; else what is newest was not read
	Records          []event.Record // ascending by offset
}

// Page is the answer to a request.
type Page struct {
	Entries   []Entry  // newest first, at most the request's limit
	Scanned   int      // records of the topic that it was computed from
	Truncated bool     // it is short, and older records were not read; never true of a full page
	TimedOut  bool     // some partition was not read to its end: what is newest there is unknown
	Newest    bool     // no record that was not read can belong before the last entry
	Missing   []string // refs that were asked for and not found, in the order of the request
}

// Select answers a request from what was read: it gathers the records into letters, filters, and bounds. It is the one
// place that does, for listings, dry runs and replays.
func Select(q Request, tails []Tail) Page {
	p, unread := Page{}, false
	for _, t := range tails {
		p.Scanned += len(t.Records)
		p.TimedOut = p.TimedOut || !t.Whole
		unread = unread || t.From > t.Start
	}
	found := map[string]bool{}
	for _, e := range gather(newestFirst(tails)) {
		switch {
		case q.Refs != nil && !slices.Contains(q.Refs, e.Ref):
		case q.Reason != "" && q.Reason != e.Reason():
		case q.Refs == nil && len(p.Entries) == q.Limit:
		default:
			p.Entries = append(p.Entries, e)
			found[e.Ref] = true
		}
	}
	short := len(p.Entries) == 0 || len(p.Entries) < q.Limit
	if q.Refs != nil {
		p.Missing = slices.DeleteFunc(slices.Clone(q.Refs), func(ref string) bool { return found[ref] })
		short = len(p.Missing) > 0
	}
	p.Truncated = short && unread
	p.Newest = !p.TimedOut && !p.Truncated && (q.Refs != nil || short || !before(tails, p.Entries[len(p.Entries)-1].age))
	return p
}

// before tells whether a record that lies before what was read may be newer than age: those of a partition are no newer
// than the oldest one of it that was read.
func before(tails []Tail, age time.Time) bool {
	for _, t := range tails {
		if t.From > t.Start && (len(t.Records) == 0 || t.Records[0].Timestamp.After(age)) {
			return true
		}
	}
	return false
}

// sighting is one record of the topic and its age.
type sighting struct {
	record *event.Record
	age    time.Time
}

// newestFirst orders the records of all partitions by age. Within a partition the offset decides: a record is never older
// than one before it, whatever clock its producer had.
func newestFirst(tails []Tail) []sighting {
	var all []sighting
	for _, t := range tails {
		for i := range t.Records {
			s := sighting{record: &t.Records[i], age: t.Records[i].Timestamp}
			if i > 0 && all[len(all)-1].age.After(s.age) {
				s.age = all[len(all)-1].age
			}
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b sighting) int {
		return cmp.Or(b.age.Compare(a.age), cmp.Compare(a.record.Partition, b.record.Partition), cmp.Compare(b.record.Offset, a.record.Offset))
	})
	return all
}
