package broker

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

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
			s.lastTerm++
			p.owned, p.paused, p.checkpoint, p.term = true, true, -1, s.lastTerm
		}
	}
	s.client.PauseFetchPartitions(added) // until the claim is back; also, a pause outlives a revocation
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
		s.recreated(tp.Topic)
	}
	s.ids[tp.Topic] = id
	p.topicID, p.expect, p.start, p.log, p.committed, p.durable = id, start.At, start.At, facts.log(tp), -1, -1
	p.seekAt, p.compared = start.Origin == offset.FromEarliest, false
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

// revoked lets the batches of these partitions finish, bounded, commits what is durable of them, and ends the ownership.
func (s *Subscription) revoked(ctx context.Context, _ *kgo.Client, gone map[string][]int32) {
	s.each(gone, func(p *partition) { p.leaving = true })
	ctx, cancel := context.WithTimeout(ctx, s.opts.RevokeWait)
	defer cancel()
	s.awaitIdle(ctx, gone)
	committing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := s.commit(committing, gone)
	if err != nil {
		s.opts.Observer.CommitFailed(err)
	}
	s.mu.Lock()
	s.parted = err == nil
	s.mu.Unlock()
	s.lost(ctx, nil, gone)
}

// lost ends the ownership without a commit: somebody else may own the partitions already.
func (s *Subscription) lost(_ context.Context, _ *kgo.Client, gone map[string][]int32) {
	s.each(gone, func(p *partition) {
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
