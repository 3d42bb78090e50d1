package broker

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"appliance/internal/intake"
	"appliance/internal/offset"
)

// assigned begins an ownership. Nothing is handed out before resolve has set the start and the claim is back.
func (s *Subscription) assigned(_ context.Context, _ *kgo.Client, added map[string][]int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for topic, partitions := range added {
		for _, n := range partitions {
			tp := intake.TP{Topic: topic, Partition: n}
			p := s.parts[tp]
			if p == nil {
				p = &partition{tp: tp}
				s.parts[tp] = p
			}
			p.leave() // whatever an earlier ownership left
			p.owned, p.checkpoint = true, -1
			p.term++
		}
	}
	s.client.ResumeFetchPartitions(added) // a pause outlives a revocation
}

// resolve is called after assigned and before the first fetch, with what the group committed, and returns where to start.
// It asks Kafka only: the checkpoint comes with the claim, which may wait behind another's transaction.
func (s *Subscription) resolve(ctx context.Context, found map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	facts, err := s.facts(ctx, found)
	if err != nil {
		s.log.Warn("resolve start positions", slog.Any("error", err))
		return nil, fmt.Errorf("resolve start positions: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	starts := make(map[string]map[int32]kgo.Offset, len(found))
	for topic, partitions := range found {
		starts[topic] = make(map[int32]kgo.Offset, len(partitions))
		for n := range partitions {
			tp := intake.TP{Topic: topic, Partition: n}
			starts[topic][n] = kgo.NewOffset().At(s.begin(tp, facts))
		}
	}
	return starts, nil
}

// begin sets a partition's start and sends for its claim. The caller holds the lock.
func (s *Subscription) begin(tp intake.TP, facts facts) int64 {
	id := facts.ids[tp.Topic]
	start := offset.Resolve(facts.commit(tp), TopicID(id), -1, facts.log(tp))
	p := s.parts[tp]
	if p == nil || !p.owned {
		return start.At
	}
	if known, ok := s.ids[tp.Topic]; ok && known != id {
		s.opts.Observer.Recreated(tp.Topic)
	}
	s.ids[tp.Topic] = id
	p.topicID, p.expect, p.start, p.log, p.committed, p.durable = id, start.At, start.At, facts.log(tp), -1, -1
	p.seekAt = start.Origin == offset.FromEarliest
	if start.Origin == offset.FromCommit {
		p.committed = facts.commit(tp).At
	}
	if s.opts.Checkpoints == nil || !p.seekAt {
		s.started(p.tp, start)
	}
	s.claim(p)
	return start.At
}

func (s *Subscription) started(tp intake.TP, start offset.Start) {
	s.opts.Observer.Started(tp, start)
	if start.Gap > 0 {
		s.opts.Observer.Gap(tp, start.Gap)
	}
}

// claim sends for the partition's epoch; until it is back the gate holds the partition. The caller holds the lock.
func (s *Subscription) claim(p *partition) {
	if p.cancel != nil {
		p.cancel()
	}
	if s.opts.Checkpoints == nil {
		p.claimed = true
		return
	}
	p.claimed = false
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	tp, topicID, term := p.tp, p.topicID, p.term
	s.done.Go(func() {
		epoch, next, ok := s.awaitClaim(ctx, tp, topicID)
		cancel()
		if ok {
			s.claimBack(tp, term, epoch, next)
		}
	})
}

// awaitClaim tries until the store answers or the partition is gone. Each try is bounded, since a claim can stand behind
// the open transaction of a writer that no longer owns the partition.
func (s *Subscription) awaitClaim(ctx context.Context, tp intake.TP, topicID [16]byte) (epoch, next int64, ok bool) {
	for delay := 100 * time.Millisecond; ; delay = min(2*delay, 5*time.Second) {
		try, cancel := context.WithTimeout(ctx, 10*time.Second)
		epoch, next, err := s.opts.Checkpoints.Claim(try, tp, topicID)
		cancel()
		if err == nil {
			return epoch, next, true
		}
		if ctx.Err() != nil {
			return 0, 0, false
		}
		s.log.Warn("claim partition", slog.String("topic", tp.Topic), slog.Int("partition", int(tp.Partition)), slog.Any("error", err))
		select {
		case <-ctx.Done():
			return 0, 0, false
		case <-time.After(delay):
		}
	}
}

func (s *Subscription) claimBack(tp intake.TP, term uint64, epoch, next int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.parts[tp]
	if p == nil || !p.owned || p.term != term {
		return
	}
	p.epoch, p.checkpoint, p.cancel = epoch, next, nil
	s.opts.Observer.Claimed(tp, epoch, offset.Ahead(next, p.committed))
	s.openGate(p)
	s.wake()
}

// openGate lets the partition be handed out, unless it was never committed and its checkpoint is further than where
// reading began: then the poll loop moves it there first. The caller holds the lock.
func (s *Subscription) openGate(p *partition) {
	if !p.seekAt {
		p.claimed = true
		return
	}
	start := offset.Resolve(offset.Commit{At: -1}, "", p.checkpoint, p.log)
	s.started(p.tp, start)
	if start.At <= p.start {
		p.seekAt, p.claimed = false, true
		return
	}
	p.start = start.At
	s.seeks = append(s.seeks, p.tp)
	if s.wakePoll != nil {
		s.wakePoll()
	}
}

// revoked lets the batches of these partitions finish, bounded, commits what is durable of them, and ends the ownership.
func (s *Subscription) revoked(ctx context.Context, _ *kgo.Client, gone map[string][]int32) {
	s.each(gone, func(p *partition) { p.leaving = true })
	ctx, cancel := context.WithTimeout(ctx, s.opts.RevokeWait)
	defer cancel()
	s.awaitIdle(ctx, gone)
	committing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := s.commit(committing, gone); err != nil {
		s.opts.Observer.CommitFailed(err)
	}
	s.lost(ctx, nil, gone)
}

// lost ends the ownership without a commit: somebody else may own the partitions already.
func (s *Subscription) lost(_ context.Context, _ *kgo.Client, gone map[string][]int32) {
	s.each(gone, func(p *partition) {
		s.held -= len(p.queue)
		p.leave()
		if !p.busy {
			delete(s.parts, p.tp)
		}
		s.opts.Observer.Revoked(p.tp)
	})
}

func (s *Subscription) each(which map[string][]int32, do func(*partition)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for topic, partitions := range which {
		for _, n := range partitions {
			if p := s.parts[intake.TP{Topic: topic, Partition: n}]; p != nil {
				do(p)
			}
		}
	}
	s.wake()
}

func (s *Subscription) awaitIdle(ctx context.Context, which map[string][]int32) {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		busy := false
		s.eachQuietly(which, func(p *partition) { busy = busy || p.busy })
		if !busy {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

func (s *Subscription) eachQuietly(which map[string][]int32, look func(*partition)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for tp, p := range s.parts {
		if slices.Contains(which[tp.Topic], tp.Partition) {
			look(p)
		}
	}
}

// facts is what Kafka knows of the assigned topics.
type facts struct {
	ids     map[string][16]byte
	commits kadm.OffsetResponses
	starts  kadm.ListedOffsets
	ends    kadm.ListedOffsets
}

func (s *Subscription) facts(ctx context.Context, found map[string]map[int32]kgo.Offset) (facts, error) {
	topics := make([]string, 0, len(found))
	for topic := range found {
		topics = append(topics, topic)
	}
	details, err := s.adm.ListTopics(ctx, topics...)
	if err != nil {
		return facts{}, fmt.Errorf("list topics: %w", err)
	}
	f := facts{ids: map[string][16]byte{}}
	for topic, d := range details {
		f.ids[topic] = d.ID
	}
	if f.commits, err = s.adm.FetchOffsetsForTopics(ctx, s.opts.Group, topics...); err != nil {
		return facts{}, fmt.Errorf("fetch committed offsets: %w", err)
	}
	if f.starts, err = s.adm.ListStartOffsets(ctx, topics...); err != nil {
		return facts{}, fmt.Errorf("list start offsets: %w", err)
	}
	if f.ends, err = s.adm.ListEndOffsets(ctx, topics...); err != nil {
		return facts{}, fmt.Errorf("list end offsets: %w", err)
	}
	return f, errorsOf(found, f)
}

// errorsOf refuses to decide on a partition whose log could not be listed: a missing start would read as zero.
func errorsOf(found map[string]map[int32]kgo.Offset, f facts) error {
	for topic, partitions := range found {
		for n := range partitions {
			start, ok1 := f.starts.Lookup(topic, n)
			end, ok2 := f.ends.Lookup(topic, n)
			switch {
			case !ok1 || !ok2:
				return fmt.Errorf("list offsets: no answer for %s/%d", topic, n)
			case start.Err != nil:
				return fmt.Errorf("list offsets of %s/%d: %w", topic, n, start.Err)
			case end.Err != nil:
				return fmt.Errorf("list offsets of %s/%d: %w", topic, n, end.Err)
			}
		}
	}
	return nil
}

func (f facts) commit(tp intake.TP) offset.Commit {
	c, ok := f.commits.Lookup(tp.Topic, tp.Partition)
	if !ok || c.Err != nil {
		return offset.Commit{At: -1}
	}
	return offset.Commit{At: c.At, Metadata: c.Metadata}
}

func (f facts) log(tp intake.TP) offset.Log {
	start, _ := f.starts.Lookup(tp.Topic, tp.Partition)
	end, _ := f.ends.Lookup(tp.Topic, tp.Partition)
	return offset.Log{Start: start.Offset, End: end.Offset}
}
