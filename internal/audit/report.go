package audit

import (
	"slices"

	"appliance/internal/broker"
)

// Report is what an audit found. Proven says that the promise holds for the whole range, or, where pending records are
// allowed, for all of it that is processed: Total.Pending says how much of it is not.
type Report struct {
	Pipeline        string      `json:"pipeline"`
	Group           string      `json:"group"`
	DeadLetterTopic string      `json:"dead_letter_topic,omitempty"`
	Proven          bool        `json:"proven"`
	Settled         bool        `json:"settled"` // every partition is
	Total           Counts      `json:"total"`
	Partitions      []Partition `json:"partitions"`
	Findings        []Finding   `json:"findings"`
	Omitted         int64       `json:"findings_omitted"`
	Messages        int64       `json:"dead_letter_messages"` // read on the dead-letter topic, of any origin
	Unreadable      int64       `json:"dead_letter_unreadable"`
	Seconds         float64     `json:"seconds"`
}

// Partition is one partition's part of it.
type Partition struct {
	Topic      string `json:"topic"`
	TopicID    string `json:"topic_id"`
	Partition  int32  `json:"partition"`
	From       int64  `json:"from"`
	To         int64  `json:"to"` // excluded
	LogStart   int64  `json:"log_start"`
	LogEnd     int64  `json:"log_end"`
	StableEnd  int64  `json:"stable_end"` // before log_end while a transaction is open, which is then not in the range
	Checkpoint *int64 `json:"checkpoint"` // next offset, as stored with the rows; null where there is none
	Committed  *int64 `json:"committed"`  // next offset, as Kafka has it; null where there is none
	Settled    bool   `json:"settled"`    // checkpoint = committed = end
	Counts
}

// Finding is a run of offsets that broke the promise, or, as information, that are a row and a dead letter, or whose event
// is in a row of another origin with other bytes.
type Finding struct {
	Kind      string `json:"kind"` // missing or unequal; as information both or other-bytes
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	First     int64  `json:"first"`
	Last      int64  `json:"last"` // included
	Detail    string `json:"detail,omitempty"`
}

const kindBoth = "both"

// settled reports whether checkpoint, commit and end are one. A partition that never held a record has neither.
func settled(checkpoint, committed *int64, end int64) bool {
	if end == 0 && checkpoint == nil && committed == nil {
		return true
	}
	return checkpoint != nil && committed != nil && *checkpoint == end && *committed == end
}

// add closes a partition's book into the report. Neighbouring offsets of one kind that have the same detail are one
// finding, and only the first limit are listed.
func (r *Report) add(p *part, limit int) {
	out := Partition{
		Topic: p.topic, TopicID: broker.TopicID(p.topicID), Partition: p.partition, From: p.book.from, To: p.book.until,
		LogStart: p.log.Start, LogEnd: p.log.End, StableEnd: p.readable.End, Checkpoint: p.checkpoint, Committed: p.committed,
		Settled: settled(p.checkpoint, p.committed, p.log.End),
	}
	out.Counts = p.book.tally(func(offset int64, v Verdict, both bool) {
		kind := string(v)
		if both && v != Unequal {
			kind = kindBoth
		}
		r.find(Finding{Kind: kind, Topic: p.topic, Partition: p.partition, First: offset, Last: offset, Detail: p.book.hints[offset]}, limit)
	})
	r.Total.add(out.Counts)
	r.Settled = r.Settled && out.Settled
	r.Partitions = append(r.Partitions, out)
}

func (r *Report) find(f Finding, limit int) {
	if n := len(r.Findings); n > 0 {
		last := &r.Findings[n-1]
		if last.Kind == f.Kind && last.Topic == f.Topic && last.Partition == f.Partition && last.Last+1 == f.First && last.Detail == f.Detail {
			last.Last = f.Last
			return
		}
	}
	if len(r.Findings) >= limit {
		r.Omitted++
		at := -1
		if !f.informs() {
			at = lastInforming(r.Findings)
		}
		if at < 0 {
			return
		}
		r.Findings = slices.Delete(r.Findings, at, at+1)
	}
	r.Findings = append(r.Findings, f)
}

// informs tells what is worth knowing from a failure, which takes its place in a list that is full.
func (f Finding) informs() bool { return f.Kind == kindBoth || f.Kind == string(OtherBytes) }

func lastInforming(all []Finding) int {
	for i, f := range slices.Backward(all) {
		if f.informs() {
			return i
		}
	}
	return -1
}

// broken reports whether anything contradicts the promise.
func (c Counts) broken() bool { return c.Missing > 0 || c.Unequal > 0 }
