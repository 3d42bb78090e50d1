package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"appliance/internal/broker"
	"appliance/internal/intake"
	"appliance/internal/offset"
	"appliance/plugins/kafka"
)

// subscriptions holds the process's memberships of consumer groups, which outlive the streams they feed: a restart or a
// reload does not leave the group, so the other partitions' owners notice nothing.
type subscriptions struct {
	log     *slog.Logger
	clock   clock
	cluster func(name string) (broker.Cluster, *broker.Admin, error)

	mu     sync.Mutex
	open   map[string]*broker.Subscription
	usedBy map[string]string // by pipeline: the key of its subscription
	closed bool              // nothing is opened any more
}

func newSubscriptions(res *resources, c clock, log *slog.Logger) *subscriptions {
	return &subscriptions{
		log: log, clock: c, open: map[string]*broker.Subscription{}, usedBy: map[string]string{},
		cluster: func(name string) (broker.Cluster, *broker.Admin, error) {
			cluster, ok := res.clusters[name]
			if !ok {
				return broker.Cluster{}, nil, fmt.Errorf("kafka %s is not configured", name)
			}
			return cluster, res.admins[name], nil
		},
	}
}

func subscriptionKey(c kafka.Config) string {
	topics := slices.Sorted(slices.Values(c.Topics))
	return strings.Join(append([]string{c.Cluster, c.Group}, topics...), "\x00")
}

// get returns the subscription for these arguments. A broken one is closed first and opened anew. ended tells why the run
// that asks is over, or nil: an answer that comes too late for its run joins no group, since nobody would read or leave it.
func (s *subscriptions) get(ctx context.Context, pipeline string, c kafka.Config, ended func() error, checkpoints broker.Checkpoints, o broker.Observer) (*broker.Subscription, error) {
	key := subscriptionKey(c)
	s.mu.Lock()
	s.usedBy[pipeline] = key
	s.mu.Unlock()
	if sub := s.peek(key); sub != nil {
		if sub.Err() == nil {
			return sub, nil
		}
		if err := s.discard(ctx, key, sub); err != nil {
			s.log.Warn("leave group", slog.Any("error", err))
		}
	}
	cluster, admin, err := s.cluster(c.Cluster)
	if err != nil {
		return nil, err
	}
	missing, err := admin.Missing(ctx, c.Topics...)
	if err != nil {
		return nil, fmt.Errorf("look for topics: %w", err)
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("topic %s does not exist: create it, or let `appliance topics ensure` do it", strings.Join(missing, ", "))
	}
	return s.join(key, ended, func() (*broker.Subscription, error) {
		return broker.Open(cluster, s.options(c, checkpoints, o))
	})
}

// join opens the subscription unless another did meanwhile. Opening doesn't wait, so it is done under the lock.
func (s *subscriptions) join(key string, ended func() error, open func() (*broker.Subscription, error)) (*broker.Subscription, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cause := ended(); cause != nil {
		return nil, fmt.Errorf("the run has ended meanwhile: %w", cause)
	}
	if s.closed {
		return nil, errors.New("the process is shutting down")
	}
	if sub := s.open[key]; sub != nil && sub.Err() == nil {
		return sub, nil
	}
	sub, err := open()
	if err != nil {
		return nil, err
	}
	s.open[key] = sub
	return sub, nil
}

func (s *subscriptions) options(c kafka.Config, checkpoints broker.Checkpoints, o broker.Observer) broker.Options {
	return broker.Options{
		Group: c.Group, Topics: c.Topics, InstanceID: c.InstanceID,
		Rule:           intake.Rule{Lanes: c.Lanes, Size: c.Batch.Size, MaxSize: c.Batch.MaxSize, Window: c.Batch.Window},
		CommitMaxBatch: c.Commit.MaxBatch, CommitInterval: c.Commit.MaxInterval,
		Tuning: tuning(c.Properties), Checkpoints: checkpoints, Observer: o, Now: s.clock.Now,
	}
}

func tuning(p kafka.Properties) broker.Tuning {
	return broker.Tuning{
		ClientID: p.ClientID, Rack: p.ClientRack,
		FetchMinBytes: p.FetchMinBytes, FetchMaxBytes: p.FetchMaxBytes, FetchMaxPartitionBytes: p.FetchMaxPartitionBytes, FetchMaxWait: p.FetchMaxWait,
		SessionTimeout: p.SessionTimeout, HeartbeatInterval: p.HeartbeatInterval, RebalanceTimeout: p.RebalanceTimeout,
		RequestTimeout: p.RequestTimeout, MetadataMaxAge: p.MetadataMaxAge, RetryBackoff: p.RetryBackoff,
	}
}

func (s *subscriptions) peek(key string) *broker.Subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[key]
}

// ofPipeline returns the subscription that the pipeline uses, or nil.
func (s *subscriptions) ofPipeline(name string) *broker.Subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[s.usedBy[name]]
}

// leave discards the subscription that the pipeline uses. An error says whose progress Kafka was not told.
func (s *subscriptions) leave(ctx context.Context, pipeline string) error {
	s.mu.Lock()
	key := s.usedBy[pipeline]
	sub := s.open[key]
	s.mu.Unlock()
	if sub == nil {
		return nil
	}
	return s.discard(ctx, key, sub)
}

// discard leaves the group and forgets the subscription; what is durable is committed first. Another one that took its
// place meanwhile stays.
func (s *subscriptions) discard(ctx context.Context, key string, sub *broker.Subscription) error {
	s.mu.Lock()
	if s.open[key] == sub {
		delete(s.open, key)
	}
	s.mu.Unlock()
	return errors.Join(undone(sub), sub.Close(ctx))
}

// undone says what was handed out and came back: the last attempt at it failed or was cancelled.
func undone(sub *broker.Subscription) error {
	records := 0
	for _, p := range sub.Progress() {
		records += p.Back
	}
	if records == 0 {
		return nil
	}
	return fmt.Errorf("%d records were handed out and not stored", records)
}

// closeAll leaves every group, at the end of the process. An error says whose progress Kafka was not told.
func (s *subscriptions) closeAll(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	open := maps.Clone(s.open)
	s.mu.Unlock()
	var all sync.WaitGroup
	var mu sync.Mutex
	var left error
	for key, sub := range open {
		all.Go(func() {
			err := s.discard(ctx, key, sub)
			mu.Lock()
			defer mu.Unlock()
			left = errors.Join(left, err)
		})
	}
	all.Wait()
	return left
}

// observer tells the log and the metrics what happens to one pipeline's subscription.
type observer struct {
	pipeline, group string
	log             *slog.Logger
	meter           subscriptionMeter
}

type subscriptionMeter interface {
	StartPosition(group, topic, from string)
	OffsetGap(group, topic string, records int64)
	OffsetSkipped(group, topic string, records int64)
	TopicRecreated(group, topic string)
}

var _ broker.Observer = observer{}

func at(tp intake.TP) []any {
	return []any{slog.String("topic", tp.Topic), slog.Int("partition", int(tp.Partition))}
}

// Started says where reading begins. A start without a commit is said louder: it may read again what was read.
func (o observer) Started(tp intake.TP, start offset.Start) {
	o.meter.StartPosition(o.group, tp.Topic, string(start.Origin))
	log := o.log.With(at(tp)...).With(slog.Int64("offset", start.At), slog.String("from", string(start.Origin)))
	switch {
	case start.Foreign:
		log.Warn("committed offset belongs to an earlier topic of this name and was not used")
	case start.Origin == offset.FromCheckpoint:
		log.Warn("group has no committed offset here and goes on at its checkpoint")
	case start.Origin == offset.FromEarliest:
		log.Info("group has neither a committed offset nor a checkpoint here")
	default:
		log.Debug("reading starts")
	}
}

// aheadWorthSaying is how far a checkpoint may be beyond the commit before it is said: two batches of commits that did
// not get through before a crash are ordinary.
const aheadWorthSaying = 20_000

// Claimed says that this process owns the partition's checkpoint.
func (o observer) Claimed(tp intake.TP, epoch, ahead int64) {
	log := o.log.With(at(tp)...).With(slog.Int64("epoch", epoch))
	if ahead > aheadWorthSaying {
		log.Warn("checkpoint is ahead of the committed offset: were the group's offsets reset?", slog.Int64("records", ahead))
		return
	}
	log.Debug("partition claimed")
}

// Unclaimed says that nothing of the partition is read, since its checkpoint could not be claimed yet.
func (o observer) Unclaimed(tp intake.TP, since time.Duration, cause error) {
	o.log.Warn("partition is not claimed yet and not read", append(at(tp), slog.Duration("since", since), slog.Any("error", cause))...)
}

// Gap says that retention took records unread.
func (o observer) Gap(tp intake.TP, records int64) {
	o.meter.OffsetGap(o.group, tp.Topic, records)
	o.log.Error("records were deleted by retention before they were read", append(at(tp), slog.Int64("records", records))...)
}

// Skipped says that records between checkpoint and commit are not read: an order that is obeyed, and never in silence.
func (o observer) Skipped(tp intake.TP, records int64) {
	o.meter.OffsetSkipped(o.group, tp.Topic, records)
	o.log.Error("committed offset is beyond the checkpoint and is obeyed: the records between are not read. Were the group's offsets moved forward, or is the database an earlier state?",
		append(at(tp), slog.Int64("records", records))...)
}

// Recreated says that the topic has a new id.
func (o observer) Recreated(topic string) {
	o.meter.TopicRecreated(o.group, topic)
	o.log.Error("topic was deleted and made anew: reading starts again with the new one", slog.String("topic", topic))
}

// Revoked says that another member owns the partition now.
func (o observer) Revoked(tp intake.TP) { o.log.Debug("partition revoked", at(tp)...) }

// CommitFailed says that Kafka does not know the progress yet; the checkpoint does.
func (o observer) CommitFailed(err error) { o.log.Warn("commit offsets", slog.Any("error", err)) }

// errStalled is the end of a run that the watchdog found standing still.
var errStalled = errors.New("no progress though records wait")

// causeClass names a failure for a metric's label: a closed set.
func causeClass(err error) string {
	switch {
	case err == nil:
		return "none"
	case errors.Is(err, errAbandoned):
		return "abandoned"
	case errors.Is(err, errStalled):
		return "stalled"
	case errors.Is(err, broker.ErrRecreated):
		return "topic-recreated"
	case errors.Is(err, errPanic), errors.Is(err, kafka.ErrPanic):
		return "panic"
	case errors.Is(err, kafka.ErrConnect):
		return "broker"
	default:
		return "write"
	}
}
