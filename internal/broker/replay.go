package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"appliance/internal/deadletter"
)

// Replayer publishes records that were dead letters. It has a client of its own, so that its owner closes what it opened.
type Replayer struct{ client *kgo.Client }

// NewReplayer returns a replayer on a cluster. It doesn't connect yet.
func NewReplayer(c Cluster) (*Replayer, error) {
	client, err := c.client(
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordPartitioner(kgo.BasicConsistentPartitioner(origin)),
		kgo.ProducerLinger(0),
		kgo.ProducerBatchMaxBytes(16<<20), // the topic's own limit decides
		kgo.ProducerBatchCompression(kgo.SnappyCompression()),
		kgo.RecordDeliveryTimeout(20*time.Second),
		kgo.AllowIdempotentProduceCancellation(),
	)
	if err != nil {
		return nil, fmt.Errorf("open replayer: %w", err)
	}
	return &Replayer{client: client}, nil
}

// origin keeps a record on the partition where it first was, whatever partitioner its producer had and also without a key.
// Of a topic that was made anew with fewer partitions it takes one that all records of that partition share.
func origin(string) func(*kgo.Record, int) int {
	return func(r *kgo.Record, partitions int) int { return int(r.Partition) % partitions }
}

// Close gives up what is not acknowledged.
func (r *Replayer) Close() { r.client.Close() }

// Published is a replayed record as the broker took it.
type Published struct {
	Ref       string `json:"ref"` // of the dead letter
	Attempt   int    `json:"attempt"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

// StoppedError says at which dead letter a replay stopped, and why. The record of that one may be in the topic all the
// same where Unknown is true: the broker did not answer in time. Replaying again is safe, since a ledger takes an event
// once.
type StoppedError struct {
	Ref     string
	Unknown bool
	Cause   error
}

// Error names the ref.
func (e *StoppedError) Error() string {
	if e.Unknown {
		return fmt.Sprintf("replay stopped at %s, which may have been published or not: %v", e.Ref, e.Cause)
	}
	return fmt.Sprintf("replay stopped at %s: %v", e.Ref, e.Cause)
}

// Unwrap returns the broker's refusal.
func (e *StoppedError) Unwrap() error { return e.Cause }

// Publish puts the records on their topics in the order given, each acknowledged by all replicas before the next is sent:
// more at once could make an outage of a broker that may itself be why they died. It stops at the first that is not
// acknowledged with a *StoppedError; those before it are returned.
func (r *Replayer) Publish(ctx context.Context, replays []deadletter.Replay) ([]Published, error) {
	var done []Published
	for _, p := range replays {
		record := &kgo.Record{Topic: p.Record.Topic, Partition: p.Record.Partition, Key: p.Record.Key, Value: p.Record.Value}
		for _, h := range p.Record.Headers {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		sent, err := r.client.ProduceSync(ctx, record).First()
		if err != nil {
			return done, &StoppedError{Ref: p.Ref, Unknown: unknown(err), Cause: err}
		}
		done = append(done, Published{Ref: p.Ref, Attempt: p.Attempt, Topic: sent.Topic, Partition: sent.Partition, Offset: sent.Offset})
	}
	return done, nil
}

// unknown tells whether a record that failed with err may be in the log: the broker refused it only where it said so.
func unknown(err error) bool {
	answer, ok := errors.AsType[*kerr.Error](err)
	return !ok || answer == kerr.NotEnoughReplicasAfterAppend || answer == kerr.RequestTimedOut
}
