package broker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"appliance/internal/event"
	"appliance/internal/intake"
)

// pollRecords bounds one poll, and by that how far the queues overshoot their bound.
const pollRecords = 4000

// poll fills the queues until ctx ends or the subscription is broken. A rebalance is allowed as soon as the records are in the queues: it is never held
// up by a batch.
func (s *Subscription) poll(ctx context.Context) {
	for s.awaitRoom(ctx) && s.Err() == nil {
		polling := s.interruptible(ctx)
		fetches := s.client.PollRecords(polling, pollRecords)
		s.errors(ctx, fetches)
		s.enqueue(ctx, fetches)
		s.seek() // between poll and AllowRebalance: no revocation can run
		s.client.AllowRebalance()
	}
}

// awaitRoom waits until the queues have room, and returns false when ctx is over. While it waits nothing is polled, so a
// rebalance may run.
func (s *Subscription) awaitRoom(ctx context.Context) bool {
	for {
		s.mu.Lock()
		full, changed := s.held() >= s.opts.QueueRecords && len(s.seeks) == 0, s.changed
		s.mu.Unlock()
		if ctx.Err() != nil || !full {
			return ctx.Err() == nil
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// held counts the records that wait to be handed out. Those of a partition that waits for its claim don't count: it is
// fetched no further, and the others go on. The caller holds the lock.
func (s *Subscription) held() int {
	n := 0
	for _, p := range s.parts {
		if p.claimed {
			n += len(p.queue)
		}
	}
	return n
}

// interruptible returns a context for one poll that a claim with a new start position ends early.
func (s *Subscription) interruptible(ctx context.Context) context.Context {
	polling, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wakePoll != nil {
		s.wakePoll()
	}
	s.wakePoll = cancel
	if len(s.seeks) > 0 {
		cancel()
	}
	return polling
}

func (s *Subscription) errors(ctx context.Context, fetches kgo.Fetches) {
	fetches.EachError(func(topic string, partition int32, err error) {
		switch {
		case errors.Is(err, context.Canceled), errors.Is(err, kgo.ErrClientClosed):
		case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.InconsistentTopicID), errors.Is(err, kerr.UnknownTopicOrPartition):
			s.checkRecreated(ctx, topic, err)
		default:
			s.log.Warn("fetch", slog.String("topic", topic), slog.Int("partition", int(partition)), slog.Any("error", err))
		}
	})
}

// checkRecreated tells a topic that was made anew from one that the brokers have not heard of yet.
func (s *Subscription) checkRecreated(ctx context.Context, topic string, cause error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	found, err := s.adm.ListTopics(ctx, topic)
	if err != nil || !found.Has(topic) {
		s.log.Warn("fetch", slog.String("topic", topic), slog.Any("error", cause))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, seen := s.ids[topic]; seen && [16]byte(found[topic].ID) != known {
		s.recreated(topic)
	}
}

func (s *Subscription) enqueue(ctx context.Context, fetches kgo.Fetches) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opts.Now()
	fetches.EachPartition(func(fetched kgo.FetchTopicPartition) {
		if p := s.parts[intake.TP{Topic: fetched.Topic, Partition: fetched.Partition}]; p != nil && p.owned {
			p.enqueue(fetched.Records, now, func(from int64) { s.checkGap(ctx, p.tp, from) })
			s.pace(p)
		}
	})
	s.wake()
}

// enqueue appends the records. A jump in the offsets is no fault in itself: a compacted log and a
// transaction's markers have them too. Nothing is dropped for a low offset: after an unclean election a log goes back, and
// what comes then are other records.
func (p *partition) enqueue(records []*kgo.Record, now time.Time, jump func(from int64)) {
	before := len(p.queue)
	for _, r := range records {
		if r.Offset > p.expect {
			jump(p.expect)
		}
		p.expect = r.Offset + 1
		if r.Attrs.IsControl() { // the end of a transaction, which is no record
			continue
		}
		if len(p.queue) == 0 {
			p.oldest = now
		}
		p.queue = append(p.queue, received(r, p.topicID))
	}
	p.bytes += size(p.queue[before:])
}

func received(r *kgo.Record, topicID [16]byte) event.Record {
	out := event.Record{
		Topic: r.Topic, TopicID: topicID, Partition: r.Partition, Offset: r.Offset,
		Timestamp: r.Timestamp, Key: r.Key, Value: r.Value,
	}
	if len(r.Headers) > 0 {
		out.Headers = make([]event.Header, len(r.Headers))
		for i, h := range r.Headers {
			out.Headers[i] = event.Header{Key: h.Key, Value: h.Value}
		}
	}
	return out
}

// pace stops fetching a partition that holds more than its share or waits for its claim, so that what can't be handed out
// does not fill the memory of all, and lets it go on at half of that. The caller holds the lock.
func (s *Subscription) pace(p *partition) {
	bound, pause := max(s.opts.QueueRecords/2, 1), p.paused
	switch {
	case !p.claimed || len(p.queue) >= bound:
		pause = true
	case len(p.queue) <= bound/2:
		pause = false
	}
	if pause == p.paused {
		return
	}
	p.paused = pause
	tp := map[string][]int32{p.tp.Topic: {p.tp.Partition}}
	if pause {
		s.client.PauseFetchPartitions(tp)
	} else {
		s.client.ResumeFetchPartitions(tp)
	}
}

// checkGap asks in the background whether records between from and where reading went on were taken by retention.
func (s *Subscription) checkGap(ctx context.Context, tp intake.TP, from int64) {
	s.done.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		starts, err := s.adm.ListStartOffsets(ctx, tp.Topic)
		if err != nil {
			return
		}
		if start, ok := starts.Lookup(tp.Topic, tp.Partition); ok && start.Err == nil && start.Offset > from {
			s.opts.Observer.Gap(tp, start.Offset-from)
		}
	})
}
