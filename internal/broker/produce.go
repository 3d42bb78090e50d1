package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"appliance/internal/event"
)

// Producer puts records on topics as they are given, acknowledged by all replicas. Safe for concurrent use.
type Producer struct {
	client *kgo.Client

	mu     sync.Mutex
	failed error
	acked  int
}

// DeliveryTimeout is how long a record may wait for its confirmation unless something else is asked for.
const DeliveryTimeout = time.Minute

// NewProducer returns a producer that buffers up to 10,000 records. It doesn't connect yet. A record that is not confirmed
// within delivery has failed, also one that was sent and never answered: whether that one is in the log is unknown, see
// Unknown. Without the cancellation such a record would wait for as long as its broker is away.
func NewProducer(c Cluster, delivery time.Duration) (*Producer, error) {
	client, err := c.client(kgo.RequiredAcks(kgo.AllISRAcks()), kgo.MaxBufferedRecords(10_000),
		kgo.ProducerLinger(5*time.Millisecond), kgo.RecordDeliveryTimeout(delivery), kgo.AllowIdempotentProduceCancellation())
	if err != nil {
		return nil, fmt.Errorf("open producer: %w", err)
	}
	return &Producer{client: client}, nil
}

// Produce queues a record, waits while the buffer is full, and returns the first failure of any record so far.
func (p *Producer) Produce(ctx context.Context, r event.Record) error {
	out := &kgo.Record{Topic: r.Topic, Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	p.client.Produce(ctx, out, func(_ *kgo.Record, err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if err == nil {
			p.acked++
		} else if p.failed == nil {
			p.failed = err
		}
	})
	_, err := p.Acked()
	return err
}

// Acked returns how many records the broker has confirmed, and the first failure.
func (p *Producer) Acked() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed != nil {
		return p.acked, fmt.Errorf("produce record: %w", p.failed)
	}
	return p.acked, nil
}

// Unknown tells whether a record that failed with err may be in the log all the same: no broker has refused it.
func Unknown(err error) bool { return unknown(err) }

// Flush waits until every record is confirmed or has failed, which takes the delivery timeout and a few seconds at most.
func (p *Producer) Flush(ctx context.Context) (int, error) {
	err := p.client.Flush(ctx)
	acked, failed := p.Acked()
	return acked, errors.Join(err, failed)
}

// Close drops what is not confirmed.
func (p *Producer) Close() { p.client.Close() }
