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
	"appliance/internal/offset"
)

// ErrEnded is what Next returns once the run that asks has ended.
var ErrEnded = errors.New("the run has ended")

// ErrRecreated is the end of a subscription whose topic was deleted and made anew: the offsets of the old one mean nothing
// in the new one, so it has to be opened again.
var ErrRecreated = errors.New("topic was recreated")

// Checkpoints is where the consumer's progress is kept beside the rows. Claim makes this process the owner of a
// partition's checkpoint and returns the epoch under which it may write, and the stored next offset (-1: none).
type Checkpoints interface {
	Claim(ctx context.Context, tp intake.TP, topicID [16]byte) (epoch, next int64, err error)
}

// Observer is told what happens to a subscription. Its methods must not wait.
type Observer interface {
	Started(tp intake.TP, start offset.Start) // reading begins
	Claimed(tp intake.TP, epoch, ahead int64) // ahead: how far the checkpoint is beyond Kafka's commit
	Gap(tp intake.TP, records int64)          // retention took records unread
	Recreated(topic string)                   // the topic has a new id
	Revoked(tp intake.TP)                     // owned no more
	CommitFailed(err error)                   // offsets were not committed this time; nothing is lost
}

// Options of a subscription. Acknowledgement is not among them: offsets are committed once their records are durable.
type Options struct {
	Group      string
	Topics     []string
	InstanceID string // static membership; "" for none
	Rule       intake.Rule

	CommitMaxBatch int           // records that are durable before offsets are committed; 0 means 1,000
	CommitInterval time.Duration // and the longest they wait for that; 0 means 5 s
	RevokeWait     time.Duration // how long a partition's batch may finish when the partition goes; 0 means 10 s
	QueueRecords   int           // records held in memory before polling stops; 0 means one full batch a lane

	SessionTimeout time.Duration // 0: the client's default of 45 s
	FetchMaxBytes  int32         // 0 means 8 MiB
	FetchMaxWait   time.Duration // 0 means 500 ms
	Checkpoints    Checkpoints   // nil: progress is in Kafka only
	Observer       Observer
	Now            func() time.Time
}

// Subscription is membership of a consumer group that outlives the streams fed by it. Its records are handed out in
// batches by intake's rule; a batch's offsets are committed after its Ack and never before. Safe for concurrent use.
type Subscription struct {
	opts   Options
	log    *slog.Logger
	client *kgo.Client
	adm    *kadm.Client

	mu     sync.Mutex
	parts  map[intake.TP]*partition
	out    map[uint64]*intake.Batch // cut and not settled
	terms  map[uint64][]uint64      // by batch: the term of each span
	ids    map[string][16]byte      // topic ids as they were when reading began
	lastID uint64
	acked  int // records durable since the last commit
	held   int // records in the queues
	err    error

	changed   chan struct{} // closed and replaced when something Next waits for may have happened
	commitNow chan struct{}
	wakePoll  context.CancelFunc
	seeks     []intake.TP // claims that moved a start position

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

func (o Options) withDefaults() Options {
	o.CommitMaxBatch = orDefault(o.CommitMaxBatch, 1000)
	o.CommitInterval = orDefault(o.CommitInterval, 5*time.Second)
	o.RevokeWait = orDefault(o.RevokeWait, 10*time.Second)
	o.SessionTimeout = orDefault(o.SessionTimeout, 10*time.Second)
	o.FetchMaxBytes = orDefault(o.FetchMaxBytes, 4<<20)
	o.FetchMaxWait = orDefault(o.FetchMaxWait, 500*time.Millisecond)
	o.QueueRecords = orDefault(o.QueueRecords, o.Rule.Lanes*max(o.Rule.Size, o.Rule.MaxSize))
	return o
}

// groupOptions: the order of the fixed ones does not matter, but each is a correctness property and no tuning.
func (s *Subscription) groupOptions() []kgo.Opt {
	opts := []kgo.Opt{
		kgo.ConsumerGroup(s.opts.Group), kgo.ConsumeTopics(s.opts.Topics...),
		kgo.DisableAutoCommit(),                           // an offset is a receipt for a durable record
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), // latest would skip in silence what came before
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),      // an aborted record never was
		kgo.KeepControlRecords(),                          // how far the log was read, also where no record is left
		kgo.Balancers(kgo.CooperativeStickyBalancer()),    // a rebalance takes only what moves
		kgo.BlockRebalanceOnPoll(),                        // queues and ownership change in turn
		kgo.RequireStableFetchOffsets(),
		kgo.AdjustFetchOffsetsFn(s.resolve),
		kgo.OnPartitionsAssigned(s.assigned), kgo.OnPartitionsRevoked(s.revoked), kgo.OnPartitionsLost(s.lost),
		kgo.SessionTimeout(s.opts.SessionTimeout), kgo.HeartbeatInterval(s.opts.SessionTimeout / 4),
		kgo.FetchMaxWait(s.opts.FetchMaxWait), kgo.FetchMaxBytes(s.opts.FetchMaxBytes),
		kgo.FetchMaxPartitionBytes(max(1<<20, s.opts.FetchMaxBytes/4)),
		kgo.MaxConcurrentFetches(1),
	}
	if s.opts.InstanceID != "" {
		opts = append(opts, kgo.InstanceID(s.opts.InstanceID))
	}
	return opts
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
	s.lastID++
	batch := &intake.Batch{ID: s.lastID, Spans: make([]intake.Span, 0, len(cuts))}
	terms := make([]uint64, 0, len(cuts))
	for _, c := range cuts {
		p := s.parts[c.TP]
		p.busy = true
		s.held -= c.N
		batch.Spans = append(batch.Spans, intake.NewSpan(p.tp, p.epoch, p.take(c.N)))
		s.pace(p) // a partition that was paused is fetched again only because of this
		terms = append(terms, p.term)
	}
	s.out[batch.ID], s.terms[batch.ID] = batch, terms
	s.wake()
	return batch
}

// Ack says that every record of the batch is durable. Its offsets are committed in the background, unless the partition
// was lost meanwhile. A batch that was settled before is ignored.
func (s *Subscription) Ack(b *intake.Batch) {
	s.settle(b, func(p *partition, span intake.Span) {
		p.durable = span.Next
		s.acked += len(span.Records)
	})
	if s.due() {
		select {
		case s.commitNow <- struct{}{}:
		default:
		}
	}
}

// Nack puts the batch's records back at the head of their queues. With fenced, the claims of its partitions are made
// anew before anything of them is handed out again.
func (s *Subscription) Nack(b *intake.Batch, fenced bool) {
	s.settle(b, func(p *partition, span intake.Span) {
		p.putBack(span.Records, s.opts.Now())
		s.held += len(span.Records)
		if fenced && !p.leaving {
			s.claim(p)
		}
	})
}

// Settle puts back every batch that the engine neither acked nor nacked. It may be called only when nothing can ack any
// more: after the engine's Run returned.
func (s *Subscription) Settle() {
	s.mu.Lock()
	out := make([]*intake.Batch, 0, len(s.out))
	for _, b := range s.out {
		out = append(out, b)
	}
	s.mu.Unlock()
	for _, b := range out {
		s.Nack(b, false)
	}
}

// settle ends a batch once, and calls owned for each span whose partition has been owned without a break since the cut.
func (s *Subscription) settle(b *intake.Batch, owned func(*partition, intake.Span)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out[b.ID] != b {
		return
	}
	terms := s.terms[b.ID]
	delete(s.out, b.ID)
	delete(s.terms, b.ID)
	for i, span := range b.Spans {
		p := s.parts[span.TP]
		p.busy = false
		if p.owned && p.term == terms[i] {
			owned(p, span)
		} else if !p.owned {
			delete(s.parts, span.TP)
		}
	}
	s.wake()
}

func (s *Subscription) due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acked >= s.opts.CommitMaxBatch
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

func (s *Subscription) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		s.wake()
	}
}

// Close commits what is durable, leaves the group and forgets the queues. It is bounded by the context.
func (s *Subscription) Close(ctx context.Context) error {
	err := s.Commit(ctx)
	s.stop()
	s.cancelClaims()
	closed := make(chan struct{})
	go func() {
		s.client.CloseAllowingRebalance()
		s.done.Wait()
		close(closed)
	}()
	select {
	case <-closed:
		return err
	case <-ctx.Done():
		return errors.Join(err, fmt.Errorf("leave group %s: %w", s.opts.Group, ctx.Err()))
	}
}

func (s *Subscription) cancelClaims() {
	s.mu.Lock()
	defer s.mu.Unlock()
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
				TP: p.tp, TopicID: p.topicID, Claimed: p.claimed, Busy: p.busy, Waiting: len(p.queue),
				Durable: p.durable, Committed: p.committed, Checkpoint: p.checkpoint, Position: p.position(),
			})
		}
	}
	return all
}
