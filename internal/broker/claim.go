package broker

import (
	"context"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"appliance/internal/intake"
	"appliance/internal/offset"
)

// claim sends for the partition's epoch; until it is back the gate holds the partition, and nothing of it is fetched: what
// can't be handed out would fill the memory of the others. The caller holds the lock.
func (s *Subscription) claim(p *partition) {
	if p.cancel != nil {
		p.cancel()
	}
	if s.opts.Checkpoints == nil {
		p.claimed = true
		s.pace(p)
		return
	}
	p.claimed = false
	s.pace(p)
	if s.closing {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.lastClaim++
	p.cancel, p.claim = cancel, s.lastClaim
	tp, topicID, claim := p.tp, p.topicID, p.claim
	s.done.Go(func() {
		epoch, next, ok := s.awaitClaim(ctx, tp, topicID)
		cancel()
		if ok {
			s.claimBack(tp, claim, epoch, next)
		}
	})
}

// awaitClaim tries until the store answers or the partition is gone. Each try is bounded, since a claim can stand behind
// the open transaction of a writer that no longer owns the partition.
func (s *Subscription) awaitClaim(ctx context.Context, tp intake.TP, topicID [16]byte) (epoch, next int64, ok bool) {
	begun, said := s.opts.Now(), time.Duration(0)
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
		s.log.Debug("claim partition", slog.String("topic", tp.Topic), slog.Int("partition", int(tp.Partition)), slog.Any("error", err))
		if since := s.opts.Now().Sub(begun); since-said >= s.opts.ClaimWarning {
			said = since
			s.opts.Observer.Unclaimed(tp, since, err)
		}
		if !pause(ctx, delay) {
			return 0, 0, false
		}
	}
}

// pause returns false when ctx ended before d was over.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// claimBack opens the gate, unless the claim is not the partition's last: an answer that overtook its cancellation belongs
// to an ownership that has ended, and its epoch is fenced.
func (s *Subscription) claimBack(tp intake.TP, claim uint64, epoch, next int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.parts[tp]
	if p == nil || !p.owned || p.claim != claim {
		return
	}
	p.epoch, p.checkpoint, p.cancel = epoch, next, nil
	s.opts.Observer.Claimed(tp, epoch, offset.Ahead(next, p.committed))
	if skipped := offset.Ahead(p.committed, next); skipped > 0 && !p.compared {
		s.opts.Observer.Skipped(tp, skipped)
	}
	p.compared = true
	s.openGate(p)
	s.wake()
}

// openGate lets the partition be handed out, unless it was never committed and its checkpoint is further than where
// reading began: then the poll loop moves it there first. The caller holds the lock.
func (s *Subscription) openGate(p *partition) {
	if p.seekAt {
		start := offset.Resolve(offset.Commit{At: -1}, "", p.checkpoint, p.log)
		s.started(p.tp, start)
		if start.At > p.start {
			p.start = start.At
			s.seeks = append(s.seeks, seekTo{p.tp, p.term})
			if s.wakePoll != nil {
				s.wakePoll()
			}
			return
		}
	}
	p.seekAt, p.claimed = false, true
	s.pace(p)
}

// seekTo names a partition whose start position moved, in the term in which it did.
type seekTo struct {
	tp   intake.TP
	term uint64
}

// seek moves the partitions whose claim brought a checkpoint ahead of where reading began, and opens their gate. One that
// has been taken away and given back since waits for its new claim.
func (s *Subscription) seek() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, to := range s.seeks {
		p := s.parts[to.tp]
		if p == nil || !p.owned || p.term != to.term || !p.seekAt {
			continue
		}
		p.queue, p.bytes, p.back, p.expect, p.seekAt, p.claimed = nil, 0, 0, p.start, false, true
		s.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{p.tp.Topic: {p.tp.Partition: {Epoch: -1, Offset: p.start}}})
		s.pace(p)
	}
	s.seeks = nil
	s.wake()
}
