package broker

import (
	"context"
	"errors"
	"time"

	"appliance/internal/deadletter"
	"appliance/internal/event"
	"appliance/internal/intake"
	"appliance/internal/offset"
)

// Page reads what answers a request for dead letters of a topic, and selects it. It reads as far as the request needs, once
// more and up to maxRecords offsets of each partition where that was not enough, and at most timeout each time.
func Page(ctx context.Context, a *Admin, c Cluster, topic string, q deadletter.Request, maxRecords int, timeout time.Duration) (deadletter.Page, error) {
	fetch := q.FetchLimit(maxRecords)
	for {
		tails, err := Newest(ctx, a, c, topic, fetch, timeout)
		if err != nil {
			return deadletter.Page{}, err
		}
		page := deadletter.Select(q, tails)
		if !q.Widen(page, fetch, maxRecords) {
			return page, nil
		}
		fetch = maxRecords
	}
}

// Newest reads the newest records of a topic: of each partition those from max(earliest, end-limit) up to the end, which
// is taken before the read begins, so that nobody who writes meanwhile makes it longer. It joins no group and moves
// nothing. After timeout it returns what it has: a partition whose end was not reached is then not Whole. The end is that
// of committed records, so that an open transaction holds nothing up.
func Newest(ctx context.Context, a *Admin, c Cluster, topic string, limit int, timeout time.Duration) ([]deadletter.Tail, error) {
	logs, err := a.Logs(ctx, topic)
	if err != nil {
		return nil, err
	}
	if logs, err = a.Readable(ctx, logs, topic); err != nil {
		return nil, err
	}
	tails, ranges := map[intake.TP]*deadletter.Tail{}, map[intake.TP]offset.Log{}
	for tp, log := range logs {
		from := max(log.Start, log.End-int64(limit))
		tails[tp] = &deadletter.Tail{Partition: tp.Partition, Start: log.Start, From: from, End: log.End, Whole: true}
		ranges[tp] = offset.Log{Start: from, End: log.End}
	}
	reading, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	left, err := readRanges(reading, c, nil, ranges, func(r event.Record) error {
		t := tails[intake.TP{Topic: r.Topic, Partition: r.Partition}]
		t.Records = append(t.Records, r)
		return nil
	})
	if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
		return nil, err
	}
	for tp := range left {
		tails[tp].Whole = false
	}
	out := make([]deadletter.Tail, 0, len(tails))
	for _, tp := range Sorted(tails) {
		out = append(out, *tails[tp])
	}
	return out, nil
}
