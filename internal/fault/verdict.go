// Package fault decides whose fault an error of PostgreSQL is: the record's, nobody's, the moment's or the program's. The
// decision is a table that operators can read and change; nothing here talks to a database.
package fault

import (
	"fmt"
	"strings"
	"time"
)

// Verdict is whose fault a refusal is, and with it what becomes of the records.
type Verdict int

// The verdicts. The zero Verdict is the one that loses nothing when it is wrong.
const (
	Transient   Verdict = iota // of the moment: the whole batch again later; nothing is attributed, nothing dead-lettered
	Record                     // of a record: attribute it, dead-letter it, store the others
	Duplicate                  // of nobody: the event is stored already
	Defect                     // of the program or its schema: stall and page; no record is to blame
	NoPartition                // of the record or of maintenance: Partition tells which
)

// String returns the word used in HCL and in explanations.
func (v Verdict) String() string {
	switch v {
	case Transient:
		return "transient"
	case Record:
		return "record"
	case Duplicate:
		return "duplicate"
	case Defect:
		return "defect"
	case NoPartition:
		return "no-partition"
	default:
		return fmt.Sprintf("verdict %d", int(v))
	}
}

// ParseVerdict reads a verdict that an operator may choose: transient, record, duplicate or defect.
func ParseVerdict(s string) (Verdict, error) {
	for _, v := range []Verdict{Transient, Record, Duplicate, Defect} {
		if v.String() == s {
			return v, nil
		}
	}
	return Transient, fmt.Errorf("parse verdict %q: not one of transient, record, duplicate, defect", s)
}

// Classify is Default().Classify.
func Classify(code, constraint string) Verdict { return Default().Classify(code, constraint) }

// Identity tells whether a constraint is the identity index of the events table or of one of its partitions. PostgreSQL
// reports the partition's index, whose name it made itself when the partition was attached: the partition's name, the
// columns of the key, "idx", and a number where the name was taken, as by a month that was detached.
func Identity(constraint string) bool {
	return strings.HasPrefix(constraint, "cloud_event_identity") ||
		strings.Contains(constraint, "_occurred_at_ce_source_ce_id_idx")
}

// Partition decides NoPartition for the row that was refused. Outside the maintained window [from, to) it is the record's
// fault, with the reason outside-partitions. Inside, the partition ought to exist: maintenance was missed, so the batch
// stalls until it is repaired.
func Partition(occurredAt, from, to time.Time) Verdict {
	if occurredAt.Before(from) || !occurredAt.Before(to) {
		return Record
	}
	return Transient
}
