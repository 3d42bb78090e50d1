package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"appliance/internal/intake"
)

// ErrEnded is what Next returns once the run that asks has ended.
var ErrEnded = errors.New("the run has ended")

// ErrRecreated is the end of a subscription whose topic was deleted and made anew: the offsets of the old one mean nothing
// in the new one, so it has to be opened again.
var ErrRecreated = errors.New("topic was recreated")

// Subscription is membership of a consumer group that outlives the streams fed by it. Its records are handed out in
// batches by intake's rule; a batch's offsets are committed after its Ack and never before. Safe for concurrent use.
type Subscription struct {
	opts   Options
	log    *slog.Logger
	client *kgo.Client
	adm    *kadm.Client

	mu    sync.Mutex
	parts map[intake.TP]*partition
	out   map[uint64]*intake.Batch // cut and not settled
	terms map[uint64][]uint64      // by batch: the term of each span
	ids   map[string][16]byte      // topic ids as they were when reading began
	acked int                      // records durable since the last commit
	err   error

	// Counted over the subscription and not by partition, so that no number comes back when a partition does.
	lastBatch, lastTerm, lastClaim uint64
	closing                        bool // no claim begins any more
	parted                         bool // the last revocation committed all that was durable

	changed   chan struct{} // closed and replaced when something Next waits for may have happened
	commitNow chan struct{}
	wakePoll  context.CancelFunc
	seeks     []seekTo // claims that moved a start position

	stop context.CancelFunc
	done sync.WaitGroup
}

// Open joins the group and begins to fill the queues. It returns at once; joining goes on in the background.
func Open(c Cluster, o Options) (*Subscription, error) {
	o = o.withDefaults()
	s := &Subscription{
		opts: o, log: c.log(),
		parts: map[intake.TP]*partition{}, out: map[uint64]*intake.Batch{}, terms: map[uint64][]uint64{}, ids: map[string][16]byte{},
		changed: make(chan struct{}), commitNow: make(chan struct{}, 1),
	}
	client, err := c.client(s.groupOptions()...)
	if err != nil {
		return nil, fmt.Errorf("open subscription: %w", err)
	}
	s.client, s.adm = client, kadm.NewClient(client)
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.done.Go(func() { s.poll(ctx) })
	s.done.Go(func() { s.commitLoop(ctx) })
	return s, nil
}

// Next waits for the next batch. It returns ErrEnded once ended is closed, the subscription's own error once it is broken,
// and the context's when that is over.
func (s *Subscription) Next(ctx context.Context, ended <-chan struct{}) (*intake.Batch, error) {
	for {
		batch, wait, changed, err := s.next(ended)
		if batch != nil || err != nil {
			return batch, err
		}
		if err := await(ctx, ended, changed, wait); err != nil {
			return nil, err
		}
	}
}

func (s *Subscription) next(ended <-chan struct{}) (*intake.Batch, time.Duration, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-ended: // looked at under the lock: no batch is cut after the run ended
		return nil, 0, nil, ErrEnded
	default:
	}
	if s.err != nil {
		return nil, 0, nil, s.err
	}
	cuts, wait := s.opts.Rule.Next(s.queues(), len(s.out), s.opts.Now())
	if len(cuts) == 0 {
		return nil, wait, s.changed, nil
	}
	return s.cut(cuts), 0, nil, nil
}

func await(ctx context.Context, ended, changed <-chan struct{}, wait time.Duration) error {
	var timeout <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-ended:
		return ErrEnded
	case <-changed:
	case <-timeout:
	}
	return nil
}

func (s *Subscription) queues() []intake.Queue {
	queues := make([]intake.Queue, 0, len(s.parts))
	for _, p := range s.parts {
		if p.owned {
			queues = append(queues, intake.Queue{
				TP: p.tp, Waiting: len(p.queue), Oldest: p.oldest, Busy: p.busy, Held: !p.claimed || p.leaving,
			})
		}
	}
	return queues
}

func (s *Subscription) cut(cuts []intake.Cut) *intake.Batch {
	s.lastBatch++
	batch := &intake.Batch{ID: s.lastBatch, Spans: make([]intake.Span, 0, len(cuts))}
	terms := make([]uint64, 0, len(cuts))
	for _, c := range cuts {
		p := s.parts[c.TP]
		p.busy = true
		batch.Spans = append(batch.Spans, intake.NewSpan(p.tp, p.epoch, p.take(c.N)))
		s.pace(p) // a partition that was paused is fetched again only because of this
		terms = append(terms, p.term)
	}
	s.out[batch.ID], s.terms[batch.ID] = batch, terms
	s.wake()
	return batch
}

// wake lets everybody who waits look again. The caller holds the lock.
func (s *Subscription) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Err returns why the subscription can't go on, or nil. A broken one is closed and opened again.
func (s *Subscription) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Break ends the subscription's use because of err; what is out may still be acked.
func (s *Subscription) Break(err error) { s.fail(err) }

// recreated breaks the subscription, since cursors, queues and offsets of the old topic mean nothing in the new one. The
// caller holds the lock.
func (s *Subscription) recreated(topic string) {
	if s.err == nil {
		s.opts.Observer.Recreated(topic)
		s.err = ErrRecreated
		s.wake()
	}
}

func (s *Subscription) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		s.wake()
	}
}

// Close commits what is durable, leaves the group and forgets the queues. It is bounded by the context. An error says that
// Kafka was not told all of the progress, or that the group still counts this member; what is left goes on leaving.
func (s *Subscription) Close(ctx context.Context) error {
	err := s.Commit(ctx)
	s.stop()
	s.endClaims()
	closed := make(chan struct{})
	go func() {
		s.client.CloseAllowingRebalance()
		s.done.Wait()
		close(closed)
	}()
	select {
	case <-closed:
	case <-ctx.Done():
		return errors.Join(err, fmt.Errorf("leave group %s: %w", s.opts.Group, ctx.Err()))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parted {
		return nil // the first try met a rebalance, and the revocation at the end made up for it
	}
	return err
}

func (s *Subscription) endClaims() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing, s.parted = true, false
	for _, p := range s.parts {
		if p.cancel != nil {
			p.cancel()
		}
	}
}

// Progress returns the partitions owned now, in no order.
func (s *Subscription) Progress() []Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Progress, 0, len(s.parts))
	for _, p := range s.parts {
		if p.owned {
			all = append(all, Progress{
				TP: p.tp, TopicID: p.topicID, Claimed: p.claimed, Busy: p.busy, Waiting: len(p.queue), Back: p.back,
				Durable: p.durable, Committed: p.committed, Checkpoint: p.checkpoint, Position: p.position(),
			})
		}
	}
	return all
}
