package broker

import "appliance/internal/intake"

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
