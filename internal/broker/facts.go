package broker

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"appliance/internal/intake"
	"appliance/internal/offset"
)

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
		if d.Err != nil { // its id would read as zero, and every commit and checkpoint as one of an earlier topic
			return facts{}, fmt.Errorf("list topic %s: %w", topic, d.Err)
		}
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

// errorsOf refuses to decide on a partition whose log or commit could not be read: a missing start would read as zero, and
// a missing commit as none, which starts at the earliest record.
func errorsOf(found map[string]map[int32]kgo.Offset, f facts) error {
	for topic, partitions := range found {
		if _, ok := f.ids[topic]; !ok {
			return fmt.Errorf("list topics: no id for %s", topic)
		}
		for n := range partitions {
			start, ok1 := f.starts.Lookup(topic, n)
			end, ok2 := f.ends.Lookup(topic, n)
			commit, ok3 := f.commits.Lookup(topic, n)
			switch {
			case ok3 && commit.Err != nil:
				return fmt.Errorf("fetch committed offset of %s/%d: %w", topic, n, commit.Err)
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
	if !ok {
		return offset.Commit{At: -1}
	}
	return offset.Commit{At: c.At, Metadata: c.Metadata}
}

func (f facts) log(tp intake.TP) offset.Log {
	start, _ := f.starts.Lookup(tp.Topic, tp.Partition)
	end, _ := f.ends.Lookup(tp.Topic, tp.Partition)
	return offset.Log{Start: start.Offset, End: end.Offset}
}
