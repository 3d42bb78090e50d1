// Package intake decides what the Kafka input hands out next: one pure rule that keeps order within a partition, never
// has two batches of one partition in flight, and balances the lanes.
package intake

import "appliance/internal/event"

// TP names a partition of a topic.
type TP struct {
	Topic     string
	Partition int32
}

// Span is one partition's share of a batch: all its records between two offsets.
type Span struct {
	TP
	TopicID [16]byte
	Epoch   int64 // the epoch of the claim under which the batch was cut; 0 without a checkpoint store
	First   int64 // offset of the first record
	Next    int64 // the offset that may be committed once the batch is durable: last record's offset + 1
	Records []event.Record
}

// Batch is what the input hands to the stream at once. Its spans are of different partitions, sorted by topic and
// partition. It accounts for every record in it, also for one that a processor dropped.
type Batch struct {
	ID    uint64
	Spans []Span
}

// Len returns the number of records.
func (b *Batch) Len() int {
	n := 0
	for i := range b.Spans {
		n += len(b.Spans[i].Records)
	}
	return n
}
