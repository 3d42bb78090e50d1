package audit

// Verdict is what became of one offset.
type Verdict string

// The verdicts. Those of the first group account for an offset, pending does once it is processed, and the last two say
// that the promise was broken.
const (
	Row        Verdict = "row"         // it is in the table
	Duplicate  Verdict = "duplicate"   // the same event is in the table under other coordinates
	OtherBytes Verdict = "other-bytes" // an event of the same identity is, and its bytes are others
	DeadLetter Verdict = "dead_letter" // it is on the dead-letter topic, byte for byte
	Gap        Verdict = "gap"         // no record has this offset: compaction, a transaction's marker, an aborted one
	Pruned     Verdict = "pruned"      // retention took the record, and neither row nor dead letter tells of it

	Pending Verdict = "pending" // not yet processed: at or beyond the checkpoint

	Missing Verdict = "missing" // processed, and in none of them
	Unequal Verdict = "unequal" // its row, or each of its dead letters, holds other bytes than the record
)

// facts are what is known of one offset.
type facts struct {
	row       bool // a row names it as its origin
	altered   bool // and was compared with the record: it holds another event or other bytes
	duplicate bool // its event is in a row of another origin
	other     bool // whose bytes are others
	letter    bool // a complete dead letter names it as its origin
	equal     bool // and one of those holds the record's bytes
	read      bool // the record was read
	kept      bool // retention has not reached the offset
	processed bool // it lies before the checkpoint
}

// classify decides. It is total; the order of the questions is that of the proof: a row is a row whatever else there is,
// and what cannot be read any more can be neither confirmed nor refuted.
func classify(f facts) Verdict {
	switch {
	case f.row && f.altered:
		return Unequal
	case f.row:
		return Row
	case f.letter && (f.equal || !f.read):
		return DeadLetter
	case f.letter:
		return Unequal
	case f.duplicate && f.other:
		return OtherBytes
	case f.duplicate:
		return Duplicate
	case !f.kept:
		return Pruned
	case !f.read:
		return Gap
	case !f.processed:
		return Pending
	default:
		return Missing
	}
}
