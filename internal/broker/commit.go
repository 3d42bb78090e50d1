package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"appliance/internal/intake"
)

// commitLoop commits every CommitInterval, or sooner when CommitMaxBatch records are durable. A commit that fails loses
// nothing: the next one covers it, and the checkpoint has it already.
func (s *Subscription) commitLoop(ctx context.Context) {
	tick := time.NewTicker(s.opts.CommitInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.commitNow:
		}
		bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
		if err := s.Commit(bounded); err != nil && ctx.Err() == nil {
			s.opts.Observer.CommitFailed(err)
		}
		cancel()
	}
}

// Commit tells Kafka what is durable of the partitions owned now, and waits for the answer.
func (s *Subscription) Commit(ctx context.Context) error { return s.commit(ctx, nil) }

// commit is the receipt, and the only place where offsets are committed: what Ack reported durable, in terms that have not
// ended. only restricts it to some partitions; nil means all.
func (s *Subscription) commit(ctx context.Context, only map[string][]int32) error {
	durable := s.uncommitted(only)
	if len(durable) == 0 {
		return nil
	}
	offsets := map[string]map[int32]kgo.EpochOffset{}
	for tp, d := range durable {
		if offsets[tp.Topic] == nil {
			offsets[tp.Topic] = map[int32]kgo.EpochOffset{}
		}
		offsets[tp.Topic][tp.Partition] = kgo.EpochOffset{Epoch: -1, Offset: d.next}
	}
	var failed error
	s.client.CommitOffsetsSync(kgo.PreCommitFnContext(ctx, s.stamp(durable)), offsets,
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
			failed = errors.Join(err, s.receipt(durable, resp))
		})
	if failed != nil {
		return fmt.Errorf("commit offsets: %w", failed)
	}
	return nil
}

// due is an offset that may be committed as long as its term lasts.
type due struct {
	next    int64
	term    uint64
	topicID string
}

func (s *Subscription) uncommitted(only map[string][]int32) map[intake.TP]due {
	s.mu.Lock()
	defer s.mu.Unlock()
	durable := map[intake.TP]due{}
	for tp, p := range s.parts {
		if !p.owned || p.durable < 0 || p.durable == p.committed || only != nil && !slices.Contains(only[tp.Topic], tp.Partition) {
			continue
		}
		durable[tp] = due{p.durable, p.term, TopicID(p.topicID)}
	}
	if only == nil {
		s.acked = 0
	}
	return durable
}

// inTerm returns the partition if it has been owned without a break since the offset was taken. The caller holds the lock.
func (s *Subscription) inTerm(tp intake.TP, d due) *partition {
	if p := s.parts[tp]; p != nil && p.owned && p.term == d.term {
		return p
	}
	return nil
}

// stamp is called with the request once the client has written the member's generation into it. It takes out what is not
// owned any more: a commit can wait for a rebalance to end, and would then rewind the partition's next owner. From here on
// the broker refuses the request itself should the generation pass. Beside each offset goes the topic's id, by which a
// later start tells a commit of this topic from one of an earlier topic of the same name.
func (s *Subscription) stamp(durable map[intake.TP]due) func(*kmsg.OffsetCommitRequest) error {
	return func(req *kmsg.OffsetCommitRequest) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i := range req.Topics {
			t := &req.Topics[i]
			t.Partitions = slices.DeleteFunc(t.Partitions, func(p kmsg.OffsetCommitRequestTopicPartition) bool {
				tp := intake.TP{Topic: t.Topic, Partition: p.Partition}
				return s.inTerm(tp, durable[tp]) == nil
			})
			for j := range t.Partitions {
				id := durable[intake.TP{Topic: t.Topic, Partition: t.Partitions[j].Partition}].topicID
				t.Partitions[j].Metadata = &id
			}
		}
		req.Topics = slices.DeleteFunc(req.Topics, func(t kmsg.OffsetCommitRequestTopic) bool { return len(t.Partitions) == 0 })
		return nil
	}
}

// receipt notes which partitions the broker confirmed. Each has an error of its own.
func (s *Subscription) receipt(durable map[intake.TP]due, resp *kmsg.OffsetCommitResponse) error {
	if resp == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var failed error
	for _, t := range resp.Topics {
		topic := t.Topic
		if topic == "" {
			topic = s.topicOf(t.TopicID)
		}
		for _, r := range t.Partitions {
			if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s/%d: %w", topic, r.Partition, err))
				continue
			}
			tp := intake.TP{Topic: topic, Partition: r.Partition}
			if d, asked := durable[tp]; asked {
				if p := s.inTerm(tp, d); p != nil {
					p.committed = d.next
				}
			}
		}
	}
	return failed
}

func (s *Subscription) topicOf(id [16]byte) string {
	for topic, known := range s.ids {
		if known == id {
			return topic
		}
	}
	return ""
}
