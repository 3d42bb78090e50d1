package intake

import (
	"cmp"
	"slices"
	"time"

	"appliance/internal/event"
)

// Rule says how batches are cut.
type Rule struct {
	Lanes   int           // batches out at once, at least 1
	Size    int           // records that a batch waits for, at least 1
	MaxSize int           // records that a batch may grow to under backlog; below Size it counts as Size
	Window  time.Duration // how long the first record of a batch waits for company
}

// Queue is one assigned partition as the rule sees it.
type Queue struct {
	TP
	Waiting int       // records in memory
	Oldest  time.Time // when the first of them came in
	Busy    bool      // a batch of this partition is out, whoever cut it
	Held    bool      // not to be handed out now: its claim is not back, or it is being revoked
}

// Cut takes the first N records of a partition's queue into the next batch.
type Cut struct {
	TP
	N int
}

// Next decides the next batch: which partitions, and how many records of each. When there is none to cut now it returns
// how long to wait before asking again; 0 means until something changes (a record, an ack, a claim).
//
// A batch takes at most ceil(assigned / lanes) partitions, oldest first: taking all that have data would leave the other
// lanes idle, since a partition is in one batch only.
func (r Rule) Next(queues []Queue, out int, now time.Time) (cuts []Cut, wait time.Duration) {
	if out >= r.Lanes {
		return nil, 0
	}
	chosen := r.choose(queues)
	if len(chosen) == 0 {
		return nil, 0
	}
	waiting := 0
	for _, q := range chosen {
		waiting += q.Waiting
	}
	if due := chosen[0].Oldest.Add(r.Window).Sub(now); waiting < r.Size && due > 0 {
		return nil, due
	}
	return fill(chosen, min(waiting, max(r.Size, r.MaxSize))), 0
}

func (r Rule) choose(queues []Queue) []Queue {
	var free []Queue
	for _, q := range queues {
		if !q.Busy && !q.Held && q.Waiting > 0 {
			free = append(free, q)
		}
	}
	slices.SortFunc(free, func(a, b Queue) int {
		return cmp.Or(a.Oldest.Compare(b.Oldest), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	share := (len(queues) + r.Lanes - 1) / r.Lanes
	return free[:min(share, len(free))]
}

// fill takes from each queue in turn until room is used, and returns the cuts sorted by topic and partition: the order in
// which every writer locks its checkpoint rows.
func fill(chosen []Queue, room int) []Cut {
	var cuts []Cut
	for _, q := range chosen {
		n := min(q.Waiting, room)
		if n == 0 {
			break
		}
		cuts = append(cuts, Cut{q.TP, n})
		room -= n
	}
	slices.SortFunc(cuts, func(a, b Cut) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return cuts
}

// NewSpan gathers the records of one cut. Records must not be empty.
func NewSpan(tp TP, epoch int64, records []event.Record) Span {
	return Span{
		TP: tp, TopicID: records[0].TopicID, Epoch: epoch,
		First: records[0].Offset, Next: records[len(records)-1].Offset + 1, Records: records,
	}
}
