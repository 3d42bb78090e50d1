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
	offsets, topicIDs := s.uncommitted(only)
	if len(offsets) == 0 {
		return nil
	}
	var failed error
	s.client.CommitOffsetsSync(kgo.PreCommitFnContext(ctx, stamp(topicIDs)), offsets,
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
			failed = errors.Join(err, s.receipt(offsets, resp))
		})
	if failed != nil {
		return fmt.Errorf("commit offsets: %w", failed)
	}
	return nil
}

func (s *Subscription) uncommitted(only map[string][]int32) (map[string]map[int32]kgo.EpochOffset, map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	offsets, topicIDs := map[string]map[int32]kgo.EpochOffset{}, map[string]string{}
	for tp, p := range s.parts {
		if !p.owned || p.durable < 0 || p.durable == p.committed || only != nil && !slices.Contains(only[tp.Topic], tp.Partition) {
			continue
		}
		if offsets[tp.Topic] == nil {
			offsets[tp.Topic] = map[int32]kgo.EpochOffset{}
			topicIDs[tp.Topic] = TopicID(p.topicID)
		}
		offsets[tp.Topic][tp.Partition] = kgo.EpochOffset{Epoch: -1, Offset: p.durable}
	}
	if only == nil {
		s.acked = 0
	}
	return offsets, topicIDs
}

// stamp writes the topic's id beside each offset, by which a later start tells a commit of this topic from one of an
// earlier topic of the same name.
func stamp(topicIDs map[string]string) func(*kmsg.OffsetCommitRequest) error {
	return func(req *kmsg.OffsetCommitRequest) error {
		for i := range req.Topics {
			t := &req.Topics[i]
			id := topicIDs[t.Topic]
			if id == "" {
				id = TopicID(t.TopicID)
			}
			for j := range t.Partitions {
				t.Partitions[j].Metadata = &id
			}
		}
		return nil
	}
}

// receipt notes which partitions the broker confirmed. Each has an error of its own.
func (s *Subscription) receipt(offsets map[string]map[int32]kgo.EpochOffset, resp *kmsg.OffsetCommitResponse) error {
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
			if p := s.parts[intake.TP{Topic: topic, Partition: r.Partition}]; p != nil && p.owned {
				p.committed = offsets[topic][r.Partition].Offset
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
