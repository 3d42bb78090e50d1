package broker

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"appliance/internal/intake"
	"appliance/internal/testservices"
)

// KF-03: a partition whose offsets have holes (records that a transaction took back, and its markers) is read to its
// last record, and nothing stalls or counts backwards.
func TestKF03HolesInTheOffsetsAreNoRecords(t *testing.T) {
	bootstrap := testservices.Kafka(t)
	topic := testservices.Topic(t, bootstrap, 1, nil)
	transaction(t, bootstrap, topic, kgo.TryCommit, "a", "b") // 0, 1 and a marker at 2
	transaction(t, bootstrap, topic, kgo.TryAbort, "x", "y")  // 3, 4 and a marker at 5: taken back
	transaction(t, bootstrap, topic, kgo.TryCommit, "c")      // 6 and a marker at 7
	sub := open(t, bootstrap, options(topic, topic, newSeen()))
	var got []int64
	for len(got) < 3 {
		batch, err := sub.Next(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range batch.Spans[0].Records {
			got = append(got, r.Offset)
		}
		sub.Ack(batch)
	}
	if fmt.Sprint(got) != "[0 1 6]" {
		t.Fatalf("read offsets %v, want the three that were committed", got)
	}
	tp := intake.TP{Topic: topic}
	caughtUp(t, sub, 8)
	closeNow(t, sub)
	if at := committed(t, bootstrap, topic)[tp]; at != 7 {
		t.Errorf("committed %d, want 7: the offset after the last record", at)
	}
}

// caughtUp waits until the position is beyond the last marker, so that the watchdog sees no stall.
func caughtUp(t *testing.T, sub *Subscription, position int64) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		progress := sub.Progress()
		if len(progress) == 1 && progress[0].Position == position {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("progress %+v, want position %d", progress, position)
		}
	}
}

func transaction(t *testing.T, bootstrap, topic string, end kgo.TransactionEndTry, values ...string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.DefaultProduceTopic(topic), kgo.TransactionalID(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		if err := client.ProduceSync(t.Context(), kgo.StringRecord(v)).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.EndTransaction(t.Context(), end); err != nil {
		t.Fatal(err)
	}
}

// KF-08: the group rebalances without end, since another member doesn't come to it. Closing is bounded all the same.
func TestKF08ClosingIsBoundedWhileTheGroupRebalances(t *testing.T) {
	bootstrap := testservices.Kafka(t)
	topic := testservices.Topic(t, bootstrap, 2, nil)
	produce(t, bootstrap, topic, 10, 2)
	stuck := make(chan struct{})
	defer close(stuck)
	other, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ConsumerGroup(topic), kgo.ConsumeTopics(topic),
		kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) {}),
		kgo.OnPartitionsRevoked(func(context.Context, *kgo.Client, map[string][]int32) { <-stuck }))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { go other.CloseAllowingRebalance() }()
	if fetched := other.PollFetches(t.Context()); fetched.Err() != nil {
		t.Fatal(fetched.Err())
	}
	sub := open(t, bootstrap, options(topic, topic, newSeen()))
	awaitRebalance(t, newAdmin(t, bootstrap), topic)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	begun := time.Now()
	_ = sub.Close(ctx) // whether it left in time or was given up, it came back
	if took := time.Since(begun); took > 5*time.Second {
		t.Fatalf("closing took %s", took)
	}
}

func awaitRebalance(t *testing.T, admin *Admin, group string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		groups, err := admin.adm.DescribeGroups(t.Context(), group)
		if err == nil && groups[group].State == "PreparingRebalance" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("group is %s (%v), want a rebalance that does not settle", groups[group].State, err)
		}
	}
}

// A batch that came back fenced: its partition is claimed anew before anything of it is handed out again.
func TestAFencedPartitionIsClaimedBeforeItIsHandedOutAgain(t *testing.T) {
	bootstrap := testservices.Kafka(t)
	topic := testservices.Topic(t, bootstrap, 1, nil)
	produce(t, bootstrap, topic, 10, 1)
	s := newSeen()
	sub := open(t, bootstrap, options(topic, topic, s))
	defer closeNow(t, sub)
	batch, err := sub.Next(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if batch.Spans[0].Epoch != 1 {
		t.Fatalf("epoch %d, want the first claim's", batch.Spans[0].Epoch)
	}
	sub.Nack(batch, true)
	again, err := sub.Next(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if again.Spans[0].Epoch != 2 || again.Spans[0].First != batch.Spans[0].First {
		t.Fatalf("got epoch %d from offset %d, want a new claim and the same records", again.Spans[0].Epoch, again.Spans[0].First)
	}
	sub.Ack(again)
}
