package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"appliance/internal/deadletter"
)

// unacknowledged is how many dead letters may be on their way to the broker at once: more would make a burst of poison an
// outage of the broker that may itself be the reason.
const unacknowledged = 16

// smallestLetter is where the search for a size that the topic takes ends: no sensible topic refuses 16 KiB.
const smallestLetter = 16 << 10

// batchOverhead is what the client counts beside the record: the batch's header and the request's fields, with the topic's
// name of up to 249 bytes.
const batchOverhead = 512

// DeadLetters publishes dead letters to one topic, idempotent and acknowledged by all replicas; neither is configurable,
// since a dead letter that is less durable than the record it replaces is a loss. Safe for concurrent use.
type DeadLetters struct {
	client   *kgo.Client
	adm      *kadm.Client
	topic    string
	maxBytes int
	timeout  time.Duration
	limit    atomic.Int32 // what the topic takes as one batch; 0 while it is not known
}

// NewDeadLetters returns a publisher to topic. A letter larger than maxBytes is published in parts, as is one that the
// topic refuses for its size; 0 means 900 KiB. It doesn't connect yet.
func NewDeadLetters(c Cluster, topic string, maxBytes int) (*DeadLetters, error) {
	d := &DeadLetters{topic: topic, maxBytes: orDefault(maxBytes, 900<<10), timeout: 30 * time.Second}
	client, err := c.client(
		kgo.DefaultProduceTopic(topic),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(0),
		kgo.MaxProduceRequestsInflightPerBroker(1),
		kgo.ProducerBatchMaxBytesFn(func(string) int32 { return d.batchBytes() }),
		kgo.ProducerBatchCompression(kgo.SnappyCompression()),
		kgo.RecordDeliveryTimeout(20*time.Second),
		kgo.AllowIdempotentProduceCancellation(),
	)
	if err != nil {
		return nil, fmt.Errorf("open dead letters: %w", err)
	}
	d.client, d.adm = client, kadm.NewClient(client)
	return d, nil
}

// batchBytes bounds a batch: by the topic's limit, or while that is not known by what one letter may have.
func (d *DeadLetters) batchBytes() int32 {
	if limit := d.limit.Load(); limit > 0 {
		return min(limit, int32(d.maxBytes+batchOverhead))
	}
	return int32(d.maxBytes + batchOverhead)
}

// letterBytes bounds a message.
func (d *DeadLetters) letterBytes() int { return int(d.batchBytes()) - batchOverhead }

// learn asks for the topic's limit, unless it is known. A broker has left requests without an answer that followed one
// which was refused for its size, so nothing is sent that would be; where the limit can't be read, one record is on its
// way at a time, and a refusal is followed by nothing.
func (d *DeadLetters) learn(ctx context.Context) bool {
	if d.limit.Load() > 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	configs, err := d.adm.DescribeTopicConfigs(ctx, d.topic)
	if err != nil {
		return false
	}
	found, err := configs.On(d.topic, nil)
	if err != nil || found.Err != nil {
		return false
	}
	for _, c := range found.Configs {
		if c.Key != "max.message.bytes" {
			continue
		}
		if limit, err := strconv.ParseInt(c.MaybeValue(), 10, 32); err == nil && limit > batchOverhead {
			d.limit.Store(int32(limit))
			return true
		}
	}
	return false
}

// forget drops a limit that the topic no longer has; the client takes the new one with the topic's next batch.
func (d *DeadLetters) forget() {
	if d.limit.Swap(0) > 0 {
		d.client.PurgeTopicsFromProducing(d.topic)
	}
}

// Topic returns where the letters go.
func (d *DeadLetters) Topic() string { return d.topic }

// Close gives up what is not acknowledged.
func (d *DeadLetters) Close() { d.client.Close() }

// Publish puts the letters on the topic in their order and returns once the broker gave each an offset. It stops at the
// first that the broker refuses; the error names it, and a later letter may then be there or not: publishing all of them
// again is safe, since a letter's key is the coordinates of its record.
func (d *DeadLetters) Publish(ctx context.Context, letters []deadletter.Letter) error {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	for len(letters) > 0 {
		n := min(unacknowledged, len(letters))
		if !d.learn(ctx) {
			n = 1
		}
		if err := d.publish(ctx, letters[:n]); err != nil {
			return err
		}
		letters = letters[n:]
	}
	return nil
}

func (d *DeadLetters) publish(ctx context.Context, letters []deadletter.Letter) error {
	for i := range letters {
		messages, err := letters[i].Encode(d.letterBytes())
		if err != nil {
			return fmt.Errorf("encode dead letter of %s: %w", letters[i].Ref(), err)
		}
		if len(messages) > 1 { // parts keep to themselves, so that no more than 16 records are on their way
			if err := d.publishAll(ctx, letters[:i], d.letterBytes()); err != nil {
				return err
			}
			if err := d.publishSmaller(ctx, letters[i], d.letterBytes()); err != nil {
				return err
			}
			return d.publish(ctx, letters[i+1:])
		}
	}
	return d.publishAll(ctx, letters, d.letterBytes())
}

// publishAll produces letters of one message each. The broker's answers come in an order of their own, so that each is
// looked up by its record: one that is taken for another's would leave a letter unpublished, which is a record lost.
func (d *DeadLetters) publishAll(ctx context.Context, letters []deadletter.Letter, maxBytes int) error {
	var records []*kgo.Record
	of := make(map[*kgo.Record]int, len(letters))
	for i, l := range letters {
		messages, err := l.Encode(maxBytes)
		if err != nil {
			return fmt.Errorf("encode dead letter of %s: %w", l.Ref(), err)
		}
		for _, r := range toRecords(messages) {
			records, of[r] = append(records, r), i
		}
	}
	tooLarge := make([]bool, len(letters))
	for _, r := range d.client.ProduceSync(ctx, records...) {
		switch {
		case r.Err == nil:
		case errors.Is(r.Err, kerr.MessageTooLarge):
			tooLarge[of[r.Record]] = true
		default:
			return d.refused(letters[of[r.Record]], r.Err)
		}
	}
	for i, l := range letters {
		if !tooLarge[i] {
			continue
		}
		d.forget()
		if err := d.publishSmaller(ctx, l, maxBytes); err != nil {
			return err
		}
	}
	return nil
}

// publishSmaller publishes one letter in records of at most maxBytes, and in smaller ones until the topic takes them.
func (d *DeadLetters) publishSmaller(ctx context.Context, l deadletter.Letter, maxBytes int) error {
	for ; maxBytes >= smallestLetter; maxBytes /= 2 {
		messages, err := l.Encode(maxBytes)
		if err != nil {
			return fmt.Errorf("encode dead letter of %s: %w", l.Ref(), err)
		}
		err = d.produceInTurn(ctx, toRecords(messages))
		if err == nil {
			return nil
		}
		if !errors.Is(err, kerr.MessageTooLarge) {
			return d.refused(l, err)
		}
	}
	return fmt.Errorf("publish dead letter of %s: the topic %s takes no record of %d bytes: %w", l.Ref(), d.topic, smallestLetter, kerr.MessageTooLarge)
}

// produceInTurn produces one record after another: several in one batch could be too large together.
func (d *DeadLetters) produceInTurn(ctx context.Context, records []*kgo.Record) error {
	for _, r := range records {
		if err := d.client.ProduceSync(ctx, r).FirstErr(); err != nil {
			return err
		}
	}
	return nil
}

// refused forgets a topic that was made anew, so that the next try finds the new one.
func (d *DeadLetters) refused(l deadletter.Letter, err error) error {
	if errors.Is(err, kerr.UnknownTopicID) || errors.Is(err, kerr.UnknownTopicOrPartition) {
		d.client.PurgeTopicsFromProducing(d.topic)
	}
	return fmt.Errorf("publish dead letter of %s: %w", l.Ref(), err)
}

func toRecords(messages []deadletter.Message) []*kgo.Record {
	records := make([]*kgo.Record, len(messages))
	for i, m := range messages {
		r := &kgo.Record{Key: m.Key, Value: m.Value}
		for _, h := range m.Headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		records[i] = r
	}
	return records
}
