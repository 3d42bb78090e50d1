package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"appliance/internal/intake"
	"appliance/internal/offset"
)

// Topic says how a topic is made. A setting that the broker has and Configs does not name is left alone.
type Topic struct {
	Name        string
	Partitions  int32
	Replication int16             // -1: the broker's default
	Configs     map[string]string // such as cleanup.policy, retention.ms
}

// Ensured is what Ensure did for one topic.
type Ensured struct {
	Name       string
	Created    bool
	Partitions int32 // that it has now; more than asked for is left alone
}

// Ensure creates the topics that are missing and grows none: adding partitions moves keys to other partitions and breaks
// their order, which is a person's decision.
func (a *Admin) Ensure(ctx context.Context, topics []Topic) ([]Ensured, error) {
	var done []Ensured
	for _, t := range topics {
		configs := make(map[string]*string, len(t.Configs))
		for k, v := range t.Configs {
			configs[k] = &v
		}
		_, err := a.adm.CreateTopic(ctx, t.Partitions, t.Replication, configs, t.Name)
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return done, fmt.Errorf("create topic %s: %w", t.Name, err)
		}
		ensured := Ensured{Name: t.Name, Created: err == nil, Partitions: t.Partitions}
		if !ensured.Created {
			if found, err := a.Topics(ctx, t.Name); err == nil {
				ensured.Partitions = int32(len(found[t.Name].Partitions))
			}
		}
		done = append(done, ensured)
	}
	return done, nil
}

// Found is a topic as it is.
type Found struct {
	ID         [16]byte
	Partitions []int32
}

// Topics describes topics; the answer lacks those that don't exist.
func (a *Admin) Topics(ctx context.Context, names ...string) (map[string]Found, error) {
	details, err := a.adm.ListTopics(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	found := map[string]Found{}
	for name, d := range details {
		if d.Err == nil {
			found[name] = Found{ID: d.ID, Partitions: d.Partitions.Numbers()}
		} else if !errors.Is(d.Err, kerr.UnknownTopicOrPartition) {
			return nil, fmt.Errorf("list topic %s: %w", name, d.Err)
		}
	}
	return found, nil
}

// Missing returns those of the topics that don't exist.
func (a *Admin) Missing(ctx context.Context, names ...string) ([]string, error) {
	found, err := a.Topics(ctx, names...)
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, n := range names {
		if _, ok := found[n]; !ok {
			missing = append(missing, n)
		}
	}
	return missing, nil
}

// Logs returns each partition's first and next offset. An open transaction's records lie before that next offset, and a
// reader of committed records does not reach it while it is open: see Readable.
func (a *Admin) Logs(ctx context.Context, topics ...string) (map[intake.TP]offset.Log, error) {
	starts, err := a.adm.ListStartOffsets(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("list start offsets: %w", err)
	}
	ends, err := a.adm.ListEndOffsets(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("list end offsets: %w", err)
	}
	return logsOf(starts, ends)
}

// logsOf puts the two answers together. A partition that one of them lacks has no log that anybody could rely on.
func logsOf(starts, ends kadm.ListedOffsets) (map[intake.TP]offset.Log, error) {
	logs := map[intake.TP]offset.Log{}
	var failed error
	ends.Each(func(end kadm.ListedOffset) {
		start, answered := starts.Lookup(end.Topic, end.Partition)
		err := errors.Join(end.Err, start.Err)
		if !answered {
			err = errors.Join(err, errNoAnswer)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("list offsets of %s/%d: %w", end.Topic, end.Partition, err))
			return
		}
		logs[intake.TP{Topic: end.Topic, Partition: end.Partition}] = offset.Log{Start: start.Offset, End: end.Offset}
	})
	starts.Each(func(start kadm.ListedOffset) {
		if _, answered := ends.Lookup(start.Topic, start.Partition); !answered {
			failed = errors.Join(failed, fmt.Errorf("list offsets of %s/%d: %w", start.Topic, start.Partition, errNoAnswer))
		}
	})
	return logs, failed
}

var errNoAnswer = errors.New("the broker left the partition out of its answer")

// Readable returns of each log what a reader of committed records can read now, for Read: it ends where the first open
// transaction began, which may be before the log's end. logs are those that Logs returned for the topics.
func (a *Admin) Readable(ctx context.Context, logs map[intake.TP]offset.Log, topics ...string) (map[intake.TP]offset.Log, error) {
	ends, err := a.StableEnds(ctx, topics...)
	if err != nil {
		return nil, err
	}
	readable := make(map[intake.TP]offset.Log, len(logs))
	for tp, log := range logs {
		end, ok := ends[tp]
		if !ok {
			return nil, fmt.Errorf("list committed end of %s/%d: %w", tp.Topic, tp.Partition, errNoAnswer)
		}
		readable[tp] = offset.Log{Start: log.Start, End: min(log.End, end)}
	}
	return readable, nil
}

// StableEnds returns the offsets up to which a reader of committed records can read now: an open transaction ends them.
func (a *Admin) StableEnds(ctx context.Context, topics ...string) (map[intake.TP]int64, error) {
	ends, err := a.adm.ListCommittedOffsets(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("list committed ends: %w", err)
	}
	found := map[intake.TP]int64{}
	ends.Each(func(end kadm.ListedOffset) {
		if end.Err == nil {
			found[intake.TP{Topic: end.Topic, Partition: end.Partition}] = end.Offset
		}
	})
	return found, nil
}

// Committed returns the group's offsets by partition; it lacks those that were never committed.
func (a *Admin) Committed(ctx context.Context, group string) (map[intake.TP]int64, error) {
	found, err := a.fetchOffsets(ctx, group)
	if err != nil {
		if errors.Is(err, kerr.GroupIDNotFound) {
			return map[intake.TP]int64{}, nil
		}
		return nil, fmt.Errorf("fetch offsets of group %s: %w", group, err)
	}
	committed := map[intake.TP]int64{}
	found.Each(func(o kadm.OffsetResponse) {
		if o.Err == nil && o.At >= 0 {
			committed[intake.TP{Topic: o.Topic, Partition: o.Partition}] = o.At
		}
	})
	return committed, nil
}

// fetchOffsets tries again while a new cluster makes the topic of offsets, which the first question about a group begins.
func (a *Admin) fetchOffsets(ctx context.Context, group string) (kadm.OffsetResponses, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		found, err := a.adm.FetchOffsets(ctx, group)
		if !errors.Is(err, kerr.CoordinatorNotAvailable) && !errors.Is(err, kerr.CoordinatorLoadInProgress) {
			return found, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-again.C:
		}
	}
}

// Sorted returns the partitions in the order in which they are printed.
func Sorted[V any](byPartition map[intake.TP]V) []intake.TP {
	return slices.SortedFunc(maps.Keys(byPartition), func(a, b intake.TP) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
}
