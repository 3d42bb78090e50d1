package broker

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"appliance/internal/intake"
	"appliance/internal/testservices"
)

const (
	stormPartitions = 12
	stormRecords    = 60_000
	stormMembers    = 4
)

var errFenced = errors.New("another owner claimed the partition")

// book stands for the database: rows by coordinates, and checkpoints that only the last claim may move.
type book struct {
	t *testing.T

	mu     sync.Mutex
	epochs map[intake.TP]int64
	next   map[intake.TP]int64
	rows   map[intake.TP]map[int64]int
	total  int
	copies int
	fenced int
}

func newBook(t *testing.T) *book {
	t.Helper()
	return &book{t: t, epochs: map[intake.TP]int64{}, next: map[intake.TP]int64{}, rows: map[intake.TP]map[int64]int{}}
}

// Claim raises the epoch, as the upsert of the checkpoint row does.
func (b *book) Claim(_ context.Context, tp intake.TP, _ [16]byte) (epoch, next int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.epochs[tp]++
	if n, ok := b.next[tp]; ok {
		return b.epochs[tp], n, nil
	}
	return b.epochs[tp], -1, nil
}

// write is one transaction: all spans, or none when one is fenced. No span may begin beyond the checkpoint.
func (b *book) write(batch *intake.Batch) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, span := range batch.Spans {
		if b.epochs[span.TP] != span.Epoch {
			b.fenced++
			return errFenced
		}
	}
	for _, span := range batch.Spans {
		if span.First > b.next[span.TP] {
			b.t.Errorf("%v: a batch begins at %d, the checkpoint is %d: records were skipped", span.TP, span.First, b.next[span.TP])
		}
		b.store(span)
	}
	return nil
}

func (b *book) store(span intake.Span) {
	rows := b.rows[span.TP]
	if rows == nil {
		rows = map[int64]int{}
		b.rows[span.TP] = rows
	}
	for i, r := range span.Records {
		if r.Offset != span.First+int64(i) {
			b.t.Errorf("%v: offset %d stands at place %d of a batch from %d: out of order", span.TP, r.Offset, i, span.First)
		}
		if rows[r.Offset] == 0 {
			b.total++
		} else {
			b.copies++
		}
		rows[r.Offset]++
	}
	b.next[span.TP] = max(b.next[span.TP], span.Next)
}

func (b *book) stored() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total
}

// covers says that no commit is beyond what is stored without a hole.
func (b *book) covers(committed map[intake.TP]int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for tp, at := range committed {
		for o := range at {
			if b.rows[tp][o] == 0 {
				b.t.Errorf("%v is committed at %d, and %d is not stored", tp, at, o)
				return
			}
		}
	}
}

// member is one life of one replica: it joins, works for a while, and leaves, or is closed while batches are out.
type member struct {
	b   *book
	sub *Subscription

	mu  sync.Mutex
	out map[intake.TP]bool
}

func (m *member) live(ctx context.Context, abandon bool) {
	working, stop := context.WithTimeout(ctx, time.Duration(300+rand.IntN(1500))*time.Millisecond)
	defer stop()
	ended := make(chan struct{})
	defer context.AfterFunc(working, func() { close(ended) })()
	var lanes sync.WaitGroup
	for range 3 {
		lanes.Go(func() { m.lane(ended) })
	}
	if abandon { // what the lanes still write comes after the group was left
		<-working.Done()
		m.close()
		lanes.Wait()
		return
	}
	lanes.Wait()
	m.close()
}

func (m *member) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := m.sub.Close(ctx); err != nil && !errors.Is(err, kgo.ErrClientClosed) {
		m.b.t.Log("close:", err) // a commit that meets a rebalance is repeated by whoever reads on
	}
}

func (m *member) lane(ended chan struct{}) {
	for {
		batch, err := m.sub.Next(context.Background(), ended)
		if err != nil {
			return
		}
		m.hold(batch, true)
		time.Sleep(writing()) // a write takes its time
		err = errors.New("refused")
		if rand.IntN(8) > 0 {
			err = m.b.write(batch)
		}
		m.hold(batch, false)
		if err == nil {
			m.sub.Ack(batch)
		} else {
			m.sub.Nack(batch, errors.Is(err, errFenced))
		}
	}
}

// writing is short, and now and then longer than a partition's batch may take when the partition goes.
func writing() time.Duration {
	if rand.IntN(20) == 0 {
		return 700 * time.Millisecond
	}
	return time.Duration(rand.IntN(60)) * time.Millisecond
}

func (m *member) hold(batch *intake.Batch, on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, span := range batch.Spans {
		if on && m.out[span.TP] {
			m.b.t.Errorf("%v is out twice", span.TP)
		}
		m.out[span.TP] = on
	}
}

func stormOptions(topic string, b *book) Options {
	o := options(topic, topic, newSeen())
	o.Checkpoints, o.RevokeWait, o.Rule.MaxSize = b, 10*time.Millisecond, 200
	return o
}

// Members come and go at random while records arrive: nothing is lost or skipped, and no commit is ahead of what is stored.
func TestAStormOfRebalancesLosesNothing(t *testing.T) {
	bootstrap := testservices.Kafka(t)
	topic := testservices.Topic(t, bootstrap, stormPartitions, nil)
	b := newBook(t)
	var storm sync.WaitGroup
	defer storm.Wait()
	ctx, calm := context.WithCancel(context.Background())
	defer calm()
	for range stormMembers {
		storm.Go(func() {
			for ctx.Err() == nil {
				m := &member{b: b, out: map[intake.TP]bool{}}
				var err error
				if m.sub, err = Open(Cluster{Brokers: []string{bootstrap}}, stormOptions(topic, b)); err != nil {
					t.Error(err)
					return
				}
				m.live(ctx, rand.IntN(3) == 0)
			}
		})
	}
	for range 25 {
		produce(t, bootstrap, topic, stormRecords/25, stormPartitions)
		time.Sleep(400 * time.Millisecond)
		b.covers(committed(t, bootstrap, topic))
	}
	calm()
	storm.Wait()
	t.Logf("in the storm: %d of %d stored, %d copies, %d fenced", b.stored(), stormRecords, b.copies, b.fenced)
	settle(t, bootstrap, topic, b)
	b.complete(committed(t, bootstrap, topic))
}

// settle lets one last member read to the end.
func settle(t *testing.T, bootstrap, topic string, b *book) {
	t.Helper()
	m := &member{b: b, sub: open(t, bootstrap, stormOptions(topic, b)), out: map[intake.TP]bool{}}
	ended := make(chan struct{})
	var lanes sync.WaitGroup
	for range 3 {
		lanes.Go(func() { m.lane(ended) })
	}
	for deadline := time.Now().Add(60 * time.Second); !m.drained(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("%d of %d records are stored, and nothing moves: %+v", b.stored(), stormRecords, m.sub.Progress())
			break
		}
	}
	close(ended)
	lanes.Wait()
	closeNow(t, m.sub)
}

func (m *member) drained() bool {
	progress := m.sub.Progress()
	for _, p := range progress {
		if p.Position != stormRecords/stormPartitions || p.Busy {
			return false
		}
	}
	return len(progress) == stormPartitions && m.b.stored() == stormRecords
}

func (b *book) complete(committed map[intake.TP]int64) {
	b.covers(committed)
	if b.total != stormRecords || len(committed) != stormPartitions {
		b.t.Errorf("%d records of %d are stored, %d partitions of %d committed", b.total, stormRecords, len(committed), stormPartitions)
	}
	for tp, at := range committed {
		if at != stormRecords/stormPartitions || b.next[tp] != at {
			b.t.Errorf("%v is committed at %d with a checkpoint of %d, want %d", tp, at, b.next[tp], stormRecords/stormPartitions)
		}
	}
	if b.fenced == 0 && b.copies == 0 {
		b.t.Logf("no batch was fenced and none came twice: a calm storm of %d members", stormMembers)
	}
}
