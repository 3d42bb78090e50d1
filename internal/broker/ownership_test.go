package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"appliance/internal/intake"
	"appliance/internal/testservices"
)

// held is a checkpoint store whose answers come when the test lets them.
type held struct {
	asked  chan intake.TP
	answer chan claimed
}

type claimed struct{ epoch, next int64 }

// Claim ignores its context: it is the answer that was under way when the claim was cancelled.
func (h *held) Claim(_ context.Context, tp intake.TP, _ [16]byte) (epoch, next int64, err error) {
	h.asked <- tp
	a := <-h.answer
	return a.epoch, a.next, nil
}

// unconnected is a subscription whose callbacks the test calls in the client's place.
func unconnected(t *testing.T, c Checkpoints) *Subscription {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	o := Options{Group: "g", Topics: []string{"t"}, Checkpoints: c, Observer: newSeen(), Now: time.Now, Rule: intake.Rule{Lanes: 1, Size: 1}}
	return &Subscription{
		opts: o.withDefaults(), log: Cluster{}.log(), client: client,
		parts: map[intake.TP]*partition{}, out: map[uint64]*intake.Batch{}, terms: map[uint64][]uint64{}, ids: map[string][16]byte{},
		changed: make(chan struct{}), commitNow: make(chan struct{}, 1),
	}
}

// logOf is a topic of one partition with records from 0 to 99, and no commit.
func logOf(id byte) facts {
	listed := func(at int64) kadm.ListedOffsets {
		return kadm.ListedOffsets{"t": {0: {Topic: "t", Offset: at}}}
	}
	return facts{ids: map[string][16]byte{"t": {id}}, starts: listed(0), ends: listed(100)}
}

// assign is what the client does when the partition comes.
func assign(s *Subscription, f facts) {
	s.assigned(context.Background(), nil, map[string][]int32{"t": {0}})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(intake.TP{Topic: "t"}, f)
}

func lose(s *Subscription) { s.lost(context.Background(), nil, map[string][]int32{"t": {0}}) }

func gate(s *Subscription) (open bool, epoch int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.parts[intake.TP{Topic: "t"}]
	return p.claimed, p.epoch
}

func TestAClaimOfAnEarlierOwnershipOpensNoGate(t *testing.T) {
	h := &held{asked: make(chan intake.TP), answer: make(chan claimed)}
	s := unconnected(t, h)
	assign(s, logOf(1))
	<-h.asked
	lose(s)
	assign(s, logOf(1)) // the same partition, another ownership
	<-h.asked
	h.answer <- claimed{1, -1} // one of both; which one is not said
	h.answer <- claimed{2, -1}
	s.done.Wait()
	if open, epoch := gate(s); !open || epoch == 0 {
		t.Fatalf("gate open %t under epoch %d, want the claim of this ownership", open, epoch)
	}
	s.claimBack(intake.TP{Topic: "t"}, 1, 77, -1) // the first, late
	if _, epoch := gate(s); epoch == 77 {
		t.Fatal("the epoch is of an ownership that has ended")
	}
}

// A start position moves while the partition is taken away and given back: the gate stays shut until the new claim.
func TestASeekOfAnEarlierOwnershipOpensNoGate(t *testing.T) {
	h := &held{asked: make(chan intake.TP), answer: make(chan claimed)}
	s := unconnected(t, h)
	assign(s, logOf(1))
	<-h.asked
	h.answer <- claimed{1, 60} // ahead of the start: the poll loop has to move there
	s.done.Wait()
	lose(s)
	assign(s, logOf(1))
	<-h.asked
	s.seek() // what the poll loop does next
	if open, _ := gate(s); open {
		t.Fatal("the gate is open before this ownership's claim is back")
	}
	h.answer <- claimed{2, 60}
	s.done.Wait()
	s.seek()
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.parts[intake.TP{Topic: "t"}]; !p.claimed || p.epoch != 2 || p.expect != 60 {
		t.Fatalf("claimed %t under epoch %d, reading on at %d; want 2 and 60", p.claimed, p.epoch, p.expect)
	}
}

// A commit can wait for a rebalance to end. What it holds of partitions that went meanwhile would rewind their next owner.
func TestACommitThatWaitedLeavesOutWhatWentMeanwhile(t *testing.T) {
	s := unconnected(t, nil)
	assign(s, logOf(1))
	tp := intake.TP{Topic: "t"}
	s.parts[tp].durable = 50
	durable := s.uncommitted(nil)
	request := func() *kmsg.OffsetCommitRequest {
		return &kmsg.OffsetCommitRequest{Topics: []kmsg.OffsetCommitRequestTopic{
			{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: 50}}},
		}}
	}
	req := request()
	if err := s.stamp(durable)(req); err != nil || len(req.Topics) != 1 || *req.Topics[0].Partitions[0].Metadata != TopicID([16]byte{1}) {
		t.Fatalf("%v, %+v: want the offset with the topic's id", err, req.Topics)
	}
	lose(s)
	if req = request(); s.stamp(durable)(req) != nil || len(req.Topics) != 0 {
		t.Fatalf("the request still holds %+v", req.Topics)
	}
	assign(s, logOf(1)) // it came back, and another may have gone on with it in between
	if req = request(); s.stamp(durable)(req) != nil || len(req.Topics) != 0 {
		t.Fatalf("the request still holds %+v of an earlier ownership", req.Topics)
	}
	answer := &kmsg.OffsetCommitResponse{Topics: []kmsg.OffsetCommitResponseTopic{
		{Topic: "t", Partitions: []kmsg.OffsetCommitResponseTopicPartition{{}}},
	}}
	if err := s.receipt(durable, answer); err != nil || s.parts[tp].committed != -1 {
		t.Fatalf("%v; the answer of an earlier ownership counts as a commit at %d", err, s.parts[tp].committed)
	}
}

func TestATopicWithAnotherIDAtAnAssignmentBreaksTheSubscription(t *testing.T) {
	s := unconnected(t, nil)
	assign(s, logOf(1))
	lose(s)
	assign(s, logOf(1))
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	lose(s)
	assign(s, logOf(2))
	if !errors.Is(s.Err(), ErrRecreated) {
		t.Fatalf("got %v: partitions of the old topic would stand still beside those of the new one", s.Err())
	}
}

// What Kafka did not answer must not read as an answer: no id is another topic, no commit is the start of the log.
func TestAnUnansweredQuestionDecidesNoStartPosition(t *testing.T) {
	found := map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset()}}
	commits := func(err error) kadm.OffsetResponses {
		return kadm.OffsetResponses{"t": {0: {Offset: kadm.Offset{Topic: "t", At: 40}, Err: err}}}
	}
	for name, tc := range map[string]struct {
		change func(*facts)
		want   string
	}{
		"everything was answered":          {func(f *facts) { f.commits = commits(nil) }, ""},
		"nothing was ever committed":       {func(*facts) {}, ""},
		"the commit could not be read":     {func(f *facts) { f.commits = commits(kerr.UnstableOffsetCommit) }, "committed offset"},
		"the log's start is missing":       {func(f *facts) { f.starts = nil }, "no answer"},
		"the log's end could not be read":  {func(f *facts) { f.ends["t"] = map[int32]kadm.ListedOffset{0: {Err: kerr.NotLeaderForPartition}} }, "list offsets"},
		"the topic's id could not be read": {func(f *facts) { delete(f.ids, "t") }, "no id"},
	} {
		t.Run(name, func(t *testing.T) {
			f := logOf(1)
			tc.change(&f)
			err := errorsOf(found, f)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// stuck is a checkpoint store that does not answer for one partition.
type stuck struct {
	*seen
	on int32
}

func (s stuck) Claim(ctx context.Context, tp intake.TP, id [16]byte) (epoch, next int64, err error) {
	if tp.Partition == s.on {
		return 0, 0, errors.New("behind a transaction of another owner")
	}
	return s.seen.Claim(ctx, tp, id)
}

func TestAPartitionWhoseClaimHangsHoldsUpNoOtherAndIsSaid(t *testing.T) {
	bootstrap := testservices.Kafka(t)
	topic := testservices.Topic(t, bootstrap, 3, nil)
	produce(t, bootstrap, topic, 12_000, 3)
	s := newSeen()
	o := options(topic, topic, s)
	o.QueueRecords, o.ClaimWarning, o.Checkpoints = 600, 200*time.Millisecond, stuck{s, 1}
	sub := open(t, bootstrap, o)
	defer closeNow(t, sub)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for left := 8_000; left > 0; {
		batch, err := sub.Next(ctx, nil)
		if err != nil {
			t.Fatalf("%d records of the other partitions were not handed out: %v", left, err)
		}
		for _, span := range batch.Spans {
			if span.Partition == 1 {
				t.Fatal("the partition without a claim was handed out")
			}
		}
		left -= batch.Len()
		sub.Ack(batch)
	}
	for s.count(intake.TP{Topic: topic, Partition: 1}) == 0 {
		if ctx.Err() != nil {
			t.Fatal("nobody was told that a claim hangs")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (s *seen) count(tp intake.TP) (n int) {
	s.note(func() { n = s.unclaimed[tp] })
	return n
}

func TestTheTuningIsTakenByTheClient(t *testing.T) {
	tuned := Tuning{
		ClientID: "me", Rack: "r1", FetchMinBytes: 2, FetchMaxBytes: 200 << 20, FetchMaxPartitionBytes: 3 << 20,
		FetchMaxWait: 300 * time.Millisecond, SessionTimeout: 20 * time.Second, HeartbeatInterval: 2 * time.Second,
		RebalanceTimeout: 40 * time.Second, RequestTimeout: 4 * time.Second, MetadataMaxAge: time.Second, RetryBackoff: 50 * time.Millisecond,
	}
	for name, tc := range map[string]struct {
		tuning Tuning
		want   map[any]any
	}{
		"each as it is given": {tuned, map[any]any{
			"ClientID": "me", "Rack": "r1", "FetchMinBytes": int32(2), "FetchMaxBytes": int32(200 << 20), "FetchMaxPartitionBytes": int32(3 << 20),
			"FetchMaxWait": 300 * time.Millisecond, "SessionTimeout": 20 * time.Second, "HeartbeatInterval": 2 * time.Second,
			"RebalanceTimeout": 40 * time.Second, "RequestTimeoutOverhead": 4 * time.Second, "MetadataMaxAge": time.Second,
		}},
		"defaults where it is not": {Tuning{}, map[any]any{
			"ClientID": "appliance", "FetchMaxBytes": int32(4 << 20), "FetchMaxPartitionBytes": int32(1 << 20),
			"SessionTimeout": 10 * time.Second, "HeartbeatInterval": 2500 * time.Millisecond,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Group: "g", Topics: []string{"t"}, Tuning: tc.tuning, Now: time.Now}.withDefaults()
			s := &Subscription{opts: o}
			opts, err := Cluster{Brokers: []string{"127.0.0.1:1"}}.options()
			if err != nil {
				t.Fatal(err)
			}
			client, err := kgo.NewClient(append(opts, s.opts.Tuning.options()...)...)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			for option, want := range tc.want {
				if got := client.OptValue(option); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%v is %v, want %v", option, got, want)
				}
			}
		})
	}
}

// Two claims of one ownership under way at once: only the later one's answer counts.
func TestOnlyTheLastClaimOfAnOwnershipCounts(t *testing.T) {
	h := &held{asked: make(chan intake.TP, 2), answer: make(chan claimed)}
	s := unconnected(t, h)
	assign(s, logOf(1))
	<-h.asked
	s.mu.Lock()
	s.claim(s.parts[intake.TP{Topic: "t"}])
	s.mu.Unlock()
	<-h.asked
	var answered sync.WaitGroup
	for epoch := range int64(2) {
		answered.Go(func() { h.answer <- claimed{epoch + 1, -1} })
	}
	answered.Wait()
	s.done.Wait()
	s.claimBack(intake.TP{Topic: "t"}, 1, 99, -1)
	if open, epoch := gate(s); !open || epoch == 99 {
		t.Fatalf("gate open %t under epoch %d, want the last claim's", open, epoch)
	}
}
