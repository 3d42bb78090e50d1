package broker

import (
	"context"
	"time"

	"appliance/internal/event"
	"appliance/internal/intake"
	"appliance/internal/offset"
)

// partition is one partition that this process owns, or has owned while a batch of it is still out.
type partition struct {
	tp      intake.TP
	topicID [16]byte

	owned  bool
	term   uint64     // of this ownership: an ack that belongs to an earlier one commits nothing
	seekAt bool       // no commit was found: the checkpoint, once claimed, says where to start
	start  int64      // where reading began
	log    offset.Log // as it was then

	claimed    bool // the gate: nothing is handed out before the claim is back
	leaving    bool // being revoked: what is out may end, nothing new begins
	compared   bool // commit and checkpoint, once a term
	epoch      int64
	checkpoint int64              // next offset the checkpoint store had at the claim; -1 none or unknown
	cancel     context.CancelFunc // of the claim under way
	claim      uint64             // the last that was sent for; 0 none in this ownership

	queue  []event.Record
	oldest time.Time // when the first of queue came in
	bytes  int
	back   int // of the queue's head: records that were handed out and came back
	paused bool
	expect int64 // offset of the next record to come in, if the log has no jumps

	busy      bool  // a batch of this partition is out
	durable   int64 // next offset after what is durable; -1 nothing yet in this term
	committed int64 // what Kafka was told last in this term, or had at the start; -1 nothing
}

// take cuts n records off the head of the queue.
func (p *partition) take(n int) []event.Record {
	records := p.queue[:n:n]
	p.queue = p.queue[n:]
	p.bytes -= size(records)
	p.back = max(0, p.back-n)
	return records
}

// putBack puts records that were handed out and not made durable in front of what waits.
func (p *partition) putBack(records []event.Record, now time.Time) {
	p.queue = append(records, p.queue...)
	p.oldest = now
	p.bytes += size(records)
	p.back += len(records)
}

// position is the next offset after what is durable. With nothing in memory it is the next to be read, since a log can end
// with offsets that are no records.
func (p *partition) position() int64 {
	switch {
	case len(p.queue) == 0 && !p.busy:
		return p.expect
	case p.durable >= 0:
		return p.durable
	default:
		return p.start
	}
}

// leave ends an ownership. The batch that is out, if any, stays out: the partition is not handed out again before it ended.
func (p *partition) leave() {
	if p.cancel != nil {
		p.cancel()
	}
	p.owned, p.claimed, p.leaving, p.seekAt, p.cancel, p.claim = false, false, false, false, nil, 0
	p.queue, p.bytes, p.back, p.paused = nil, 0, 0, false
	p.durable, p.committed = -1, -1
}

func size(records []event.Record) int {
	n := 0
	for i := range records {
		n += len(records[i].Key) + len(records[i].Value) + recordOverhead
	}
	return n
}

// recordOverhead is about what a record costs in memory beside its key and value: the struct and its headers.
const recordOverhead = 300

// Progress is how far a subscription is in one partition that it owns.
type Progress struct {
	intake.TP
	TopicID    [16]byte
	Claimed    bool  // the gate is open
	Busy       bool  // a batch is out
	Waiting    int   // records in memory
	Back       int   // of them, those that were handed out and came back undone
	Durable    int64 // next offset after what became durable in this ownership; -1 nothing yet
	Committed  int64 // what Kafka was told last; -1 nothing yet
	Checkpoint int64 // next offset the checkpoint had when it was claimed; -1 none
	Position   int64 // what moves as long as anything does: next offset after what is durable, or after what was read and is none
}
