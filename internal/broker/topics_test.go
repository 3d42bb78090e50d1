package broker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"appliance/internal/event"
	"appliance/internal/intake"
	"appliance/internal/offset"
	"appliance/internal/testservices"
)

func TestALogNeedsBothOfItsEnds(t *testing.T) {
	at := func(partition int32, offset int64, err error) kadm.ListedOffset {
		return kadm.ListedOffset{Topic: "t", Partition: partition, Offset: offset, Err: err}
	}
	listed := func(all ...kadm.ListedOffset) kadm.ListedOffsets {
		out := kadm.ListedOffsets{"t": {}}
		for _, o := range all {
			out["t"][o.Partition] = o
		}
		return out
	}
	for _, c := range []struct {
		name         string
		starts, ends kadm.ListedOffsets
		says         string
	}{
		{"both are there", listed(at(0, 3, nil), at(1, 0, nil)), listed(at(0, 9, nil), at(1, 0, nil)), ""},
		{"no start", listed(at(0, 3, nil)), listed(at(0, 9, nil), at(1, 7, nil)), "list offsets of t/1: the broker left the partition out"},
		{"no starts of the topic at all", nil, listed(at(0, 9, nil)), "list offsets of t/0: the broker left the partition out"},
		{"no end", listed(at(0, 3, nil), at(1, 0, nil)), listed(at(0, 9, nil)), "list offsets of t/1: the broker left the partition out"},
		{"a start that the broker refused", listed(at(0, -1, kerr.NotLeaderForPartition)), listed(at(0, 9, nil)), "NOT_LEADER"},
		{"an end that the broker refused", listed(at(0, 3, nil)), listed(at(0, -1, kerr.NotLeaderForPartition)), "NOT_LEADER"},
	} {
		t.Run(c.name, func(t *testing.T) {
			logs, err := logsOf(c.starts, c.ends)
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v %v, want %q", logs, err, c.says)
				}
				return
			}
			if err != nil || logs[intake.TP{Topic: "t"}] != (offset.Log{Start: 3, End: 9}) || len(logs) != 2 {
				t.Errorf("got %v %v", logs, err)
			}
		})
	}
}

// A reader of committed records waits at an open transaction, so a read that is to return has to end before it.
func TestAReadableLogEndsWhereAnOpenTransactionBegan(t *testing.T) {
	bootstrap := testservices.Kafka(t)
	topic := testservices.Topic(t, bootstrap, 1, nil)
	transaction(t, bootstrap, topic, kgo.TryCommit, "a", "b") // 0, 1 and a marker at 2
	openTransaction(t, bootstrap, topic)                      // 3
	put(t, bootstrap, topic, 0, "c")                          // 4
	admin, tp := newAdmin(t, bootstrap), intake.TP{Topic: topic}
	logs, err := admin.Logs(t.Context(), topic)
	if err != nil || logs[tp] != (offset.Log{End: 5}) {
		t.Fatalf("%v %v", logs, err)
	}
	readable, err := admin.Readable(t.Context(), logs, topic)
	if err != nil || readable[tp] != (offset.Log{End: 3}) || len(readable) != 1 {
		t.Fatalf("%v %v", readable, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var values []string
	err = Read(ctx, Cluster{Brokers: strings.Split(bootstrap, ",")}, nil, readable, func(r event.Record) error {
		values = append(values, string(r.Value))
		return nil
	})
	if err != nil || strings.Join(values, "") != "ab" {
		t.Errorf("read %v %v", values, err)
	}
	logs[intake.TP{Topic: topic, Partition: 1}] = offset.Log{}
	if _, err = admin.Readable(t.Context(), logs, topic); !errors.Is(err, errNoAnswer) {
		t.Errorf("a partition without an answer: %v", err)
	}
}
