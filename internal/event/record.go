// Package event holds the CloudEvent as a value, and the two codecs that read one: a total function from the bytes that
// were received to an Event or to the Fault that says which attribute broke which rule.
package event

import "time"

// Header is one Kafka record header. A nil Value is a header without a value, which is not the same as an empty one.
type Header struct {
	Key   string
	Value []byte
}

// Record is one Kafka record as a value: what was received, untouched.
//
// Key and Value are nil where the record has none (a tombstone), and empty where it has an empty one.
type Record struct {
	Topic     string
	TopicID   [16]byte // Kafka's topic id, zero when the broker gave none
	Partition int32
	Offset    int64
	Timestamp time.Time
	Key       []byte
	Value     []byte
	Headers   []Header
}
