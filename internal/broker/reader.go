package broker

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"appliance/internal/event"
	"appliance/internal/intake"
	"appliance/internal/offset"
)

// Read hands each record between the given offsets (end excluded) to take, in order within a partition. It joins no group
// and moves nothing. It returns once every partition has reached its end; offsets without a record (compacted, or a
// transaction's marker) are passed over. It reads committed records, so an end behind an open transaction is reached only
// when that one is over: ask Admin.Readable for ends. ctx bounds it; take's error ends it.
func Read(ctx context.Context, c Cluster, topicIDs map[string][16]byte, ranges map[intake.TP]offset.Log, take func(event.Record) error) error {
	_, err := readRanges(ctx, c, topicIDs, ranges, take)
	return err
}

// readRanges is Read that also returns the partitions whose end it did not reach.
func readRanges(ctx context.Context, c Cluster, topicIDs map[string][16]byte, ranges map[intake.TP]offset.Log, take func(event.Record) error) (map[intake.TP]int64, error) {
	from, left := map[string]map[int32]kgo.Offset{}, map[intake.TP]int64{}
	for tp, r := range ranges {
		if r.Start >= r.End {
			continue
		}
		if from[tp.Topic] == nil {
			from[tp.Topic] = map[int32]kgo.Offset{}
		}
		from[tp.Topic][tp.Partition] = kgo.NewOffset().At(r.Start)
		left[tp] = r.End
	}
	if len(left) == 0 {
		return nil, nil
	}
	client, err := c.client(kgo.ConsumePartitions(from), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	if err != nil {
		return left, fmt.Errorf("open reader: %w", err)
	}
	defer client.Close()
	for len(left) > 0 {
		if err := readSome(ctx, client, topicIDs, left, take); err != nil {
			return left, err
		}
	}
	return nil, nil
}

// readSome polls once. Control records are asked for, since one may be all that stands before the end of a range.
func readSome(ctx context.Context, client *kgo.Client, topicIDs map[string][16]byte, left map[intake.TP]int64, take func(event.Record) error) error {
	fetches := client.PollFetches(ctx)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("read records: %w", err)
	}
	var failed error
	fetches.EachError(func(topic string, partition int32, err error) {
		failed = fmt.Errorf("read %s/%d: %w", topic, partition, err)
	})
	for it := fetches.RecordIter(); !it.Done() && failed == nil; {
		r := it.Next()
		tp := intake.TP{Topic: r.Topic, Partition: r.Partition}
		end, open := left[tp]
		if !open {
			continue
		}
		if r.Offset < end && !r.Attrs.IsControl() {
			failed = take(received(r, topicIDs[r.Topic]))
		}
		if r.Offset+1 >= end {
			delete(left, tp)
		}
	}
	return failed
}
