package broker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"appliance/internal/event"
	"appliance/internal/intake"
	"appliance/internal/offset"
	"appliance/internal/testservices"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seen is an Observer that remembers, and the checkpoints of a group beside it.
type seen struct {
	mu        sync.Mutex
	starts    map[intake.TP]offset.Start
	gaps      map[intake.TP]int64
	skipped   map[intake.TP]int64
	recreated int
	epochs    map[intake.TP]int64
	next      map[intake.TP]int64
	unclaimed map[intake.TP]int
}

func newSeen() *seen {
	return &seen{starts: map[intake.TP]offset.Start{}, gaps: map[intake.TP]int64{}, skipped: map[intake.TP]int64{}, epochs: map[intake.TP]int64{}, next: map[intake.TP]int64{}, unclaimed: map[intake.TP]int{}}
}

func (s *seen) note(do func()) { s.mu.Lock(); defer s.mu.Unlock(); do() }

func (s *seen) Started(tp intake.TP, start offset.Start) { s.note(func() { s.starts[tp] = start }) }
func (s *seen) Gap(tp intake.TP, n int64)                { s.note(func() { s.gaps[tp] += n }) }
func (s *seen) Skipped(tp intake.TP, n int64)            { s.note(func() { s.skipped[tp] += n }) }
func (s *seen) Recreated(string)                         { s.note(func() { s.recreated++ }) }
func (s *seen) Claimed(intake.TP, int64, int64)          {}
func (s *seen) Unclaimed(tp intake.TP, _ time.Duration, _ error) {
	s.note(func() { s.unclaimed[tp]++ })
}
func (s *seen) Revoked(intake.TP)  {}
func (s *seen) CommitFailed(error) {}

func (s *seen) Claim(_ context.Context, tp intake.TP, _ [16]byte) (epoch, next int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epochs[tp]++
	if n, ok := s.next[tp]; ok {
		return s.epochs[tp], n, nil
	}
	return s.epochs[tp], -1, nil
}

func options(group, topic string, s *seen) Options {
	return Options{
		Group: group, Topics: []string{topic}, Checkpoints: s, Observer: s, Now: time.Now,
		Rule:           intake.Rule{Lanes: 3, Size: 50, MaxSize: 400, Window: 20 * time.Millisecond},
		CommitInterval: 200 * time.Millisecond, CommitMaxBatch: 500,
	}
}

func open(t *testing.T, bootstrap string, o Options) *Subscription {
	t.Helper()
	sub, err := Open(Cluster{Brokers: []string{bootstrap}}, o)
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

func closeNow(t *testing.T, sub *Subscription) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := sub.Close(ctx); err != nil {
		t.Error(err)
	}
}

func produce(t *testing.T, bootstrap, topic string, n, partitions int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{Topic: topic, Partition: int32(i % partitions), Value: fmt.Appendf(nil, "%d", i)}
	}
	if err := client.ProduceSync(context.Background(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// ledger stands for the output: it holds what was acked, in order, by partition.
type ledger struct {
	mu      sync.Mutex
	offsets map[intake.TP][]int64
	inUse   map[intake.TP]bool
	total   int
}

func newLedger() *ledger {
	return &ledger{offsets: map[intake.TP][]int64{}, inUse: map[intake.TP]bool{}}
}

// work takes batches as a lane does until total records are stored, refusing some at random.
func (l *ledger) work(t *testing.T, sub *Subscription, total int, ended chan struct{}) {
	t.Helper()
	for {
		batch, err := sub.Next(t.Context(), ended)
		if err != nil {
			return
		}
		l.take(t, batch)
		if rand.IntN(10) == 0 {
			l.put(batch, nil)
			sub.Nack(batch, rand.IntN(2) == 0)
			continue
		}
		done := l.put(batch, func(span intake.Span) {
			for _, r := range span.Records {
				l.offsets[span.TP] = append(l.offsets[span.TP], r.Offset)
				l.total++
			}
		})
		sub.Ack(batch)
		if done >= total {
			select {
			case <-ended:
			default:
				close(ended)
			}
			return
		}
	}
}

func (l *ledger) take(t *testing.T, b *intake.Batch) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, span := range b.Spans {
		if l.inUse[span.TP] {
			t.Errorf("partition %v is out twice", span.TP)
		}
		l.inUse[span.TP] = true
	}
}

func (l *ledger) put(b *intake.Batch, store func(intake.Span)) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, span := range b.Spans {
		l.inUse[span.TP] = false
		if store != nil {
			store(span)
		}
	}
	return l.total
}

func (l *ledger) verify(t *testing.T, partitions, each int) {
	t.Helper()
	if len(l.offsets) != partitions {
		t.Fatalf("%d partitions were read, want %d", len(l.offsets), partitions)
	}
	for tp, offsets := range l.offsets {
		if len(offsets) != each {
			t.Errorf("%v: %d records, want %d", tp, len(offsets), each)
		}
		for i, o := range offsets {
			if o != int64(i) {
				t.Fatalf("%v: record %d has offset %d: out of order, lost or doubled", tp, i, o)
			}
		}
	}
}

func TestEachRecordComesOnceAndInOrderThoughBatchesAreRefused(t *testing.T) {
	bootstrap := testservices.Kafka(t)
	for name, tc := range map[string]struct{ partitions, queue int }{
		"from many partitions":                         {6, 0},
		"from one that is paused and has to come back": {1, 600},
		"from many that are paused in turn":            {6, 600},
	} {
		t.Run(name, func(t *testing.T) {
			topic := testservices.Topic(t, bootstrap, int32(tc.partitions), nil)
			produce(t, bootstrap, topic, 24_000, tc.partitions)
			o := options(topic, topic, newSeen())
			o.QueueRecords = tc.queue
			readAll(t, open(t, bootstrap, o), 24_000).verify(t, tc.partitions, 24_000/tc.partitions)
			for tp, at := range committed(t, bootstrap, topic) {
				if at != int64(24_000/tc.partitions) {
					t.Errorf("%v is committed at %d", tp, at)
				}
			}
		})
	}
}

func readAll(t *testing.T, sub *Subscription, total int) *ledger {
	t.Helper()
	l, ended := newLedger(), make(chan struct{})
	var lanes sync.WaitGroup
	for range 3 {
		lanes.Go(func() { l.work(t, sub, total, ended) })
	}
	lanes.Wait()
	closeNow(t, sub)
	return l
}

func committed(t *testing.T, bootstrap, group string) map[intake.TP]int64 {
	t.Helper()
	admin := newAdmin(t, bootstrap)
	found, err := admin.Committed(t.Context(), group)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func newAdmin(t *testing.T, bootstrap string) *Admin {
	t.Helper()
	admin, err := NewAdmin(Cluster{Brokers: []string{bootstrap}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(admin.Close)
	return admin
}

// first opens the group anew and returns the first batch's record of partition 0.
func first(t *testing.T, bootstrap string, o Options) event.Record {
	t.Helper()
	sub := open(t, bootstrap, o)
	defer closeNow(t, sub)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	batch, err := sub.Next(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	sub.Nack(batch, false)
	return batch.Spans[0].Records[0]
}

func TestWhereReadingStarts(t *testing.T) {
	bootstrap := testservices.Kafka(t)
	adm := newAdmin(t, bootstrap).adm
	commit := func(group, topic string, at int64, metadata string) {
		var offsets kadm.Offsets
		offsets.Add(kadm.Offset{Topic: topic, Partition: 0, At: at, LeaderEpoch: -1, Metadata: metadata})
		for try := range 20 { // a fresh broker has no coordinator yet
			resp, err := adm.CommitOffsets(t.Context(), group, offsets)
			if err == nil && resp.Ok() {
				return
			}
			if try == 19 {
				t.Fatal(err, resp.Error())
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	for name, tc := range map[string]struct {
		commit   int64
		metadata string
		next     int64
		prune    int64
		want     int64
		gap      int64
		skipped  int64
	}{
		"at the earliest record":                         {-1, "", -1, 0, 0, 0, 0},
		"at the commit, though the checkpoint is on":     {30, "", 60, 0, 30, 0, 0},
		"at the checkpoint, when there is no commit":     {-1, "", 60, 0, 60, 0, 0},
		"at the log's start, and the gap is said":        {10, "", -1, 50, 50, 40, 0},
		"a commit of an earlier topic counts not":        {30, "BBBBBBBBBBBBBBBBBBBBBB", -1, 0, 0, 0, 0},
		"a checkpoint beyond the log's end neither":      {-1, "", 500, 0, 0, 0, 0},
		"at the commit, though the checkpoint is behind": {60, "", 20, 0, 60, 0, 40},
	} {
		t.Run(name, func(t *testing.T) {
			topic, s := testservices.Topic(t, bootstrap, 1, nil), newSeen()
			produce(t, bootstrap, topic, 100, 1)
			tp := intake.TP{Topic: topic}
			if tc.commit >= 0 {
				commit(topic, topic, tc.commit, tc.metadata)
			}
			if tc.next >= 0 {
				s.next[tp] = tc.next
			}
			if tc.prune > 0 {
				var upTo kadm.Offsets
				upTo.AddOffset(topic, 0, tc.prune, -1)
				if _, err := adm.DeleteRecords(t.Context(), upTo); err != nil {
					t.Fatal(err)
				}
			}
			if r := first(t, bootstrap, options(topic, topic, s)); r.Offset != tc.want {
				t.Errorf("reading started at %d, want %d", r.Offset, tc.want)
			}
			if s.gaps[tp] != tc.gap {
				t.Errorf("gap %d, want %d", s.gaps[tp], tc.gap)
			}
			if s.skipped[tp] != tc.skipped {
				t.Errorf("%d records were said to be skipped, want %d", s.skipped[tp], tc.skipped)
			}
		})
	}
}

func TestARecreatedTopicBreaksTheSubscriptionAndIsReadFromItsStart(t *testing.T) {
	bootstrap := testservices.Kafka(t)
	topic := testservices.Topic(t, bootstrap, 1, nil)
	adm := newAdmin(t, bootstrap).adm
	produce(t, bootstrap, topic, 100, 1)
	s := newSeen()
	sub := open(t, bootstrap, options(topic, topic, s))
	batch, err := sub.Next(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	sub.Ack(batch)
	if err := sub.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := adm.DeleteTopic(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	recreate(t, adm, topic)
	produce(t, bootstrap, topic, 200, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for err == nil {
		if batch, err = sub.Next(ctx, nil); err == nil {
			sub.Ack(batch)
		}
	}
	if err.Error() != ErrRecreated.Error() || s.recreated == 0 {
		t.Fatalf("got %v, want %v and an event", err, ErrRecreated)
	}
	_ = sub.Commit(ctx) // whatever it answers, the new topic's offsets must not move
	closeNow(t, sub)
	if r := first(t, bootstrap, options(topic, topic, s)); r.Offset != 0 {
		t.Fatalf("reading the new topic started at %d", r.Offset)
	}
}

func recreate(t *testing.T, adm *kadm.Client, topic string) {
	t.Helper()
	for range 100 {
		if _, err := adm.CreateTopic(t.Context(), 1, 1, nil, topic); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the topic could not be made anew")
}

// A partition that goes while its batch is out: the ack that comes after it was revoked commits nothing.
func TestAnAckAfterRevocationCommitsNothing(t *testing.T) {
	bootstrap := testservices.Kafka(t)
	topic := testservices.Topic(t, bootstrap, 2, nil)
	produce(t, bootstrap, topic, 200, 2)
	o := options(topic, topic, newSeen())
	o.RevokeWait, o.Rule.Lanes, o.Rule.Size, o.Rule.MaxSize = 200*time.Millisecond, 2, 100, 100
	a := open(t, bootstrap, o)
	defer closeNow(t, a)
	held := make([]*intake.Batch, 2)
	for i := range held {
		var err error
		if held[i], err = a.Next(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	b := open(t, bootstrap, o)
	defer closeNow(t, b)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	got, err := b.Next(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	lost := got.Spans[0].TP
	for _, h := range held {
		a.Ack(h)
	}
	if err := a.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	for tp, at := range committed(t, bootstrap, topic) {
		if tp == lost {
			t.Fatalf("%v, which another member owns, was committed at %d", tp, at)
		}
	}
	b.Nack(got, false)
}
