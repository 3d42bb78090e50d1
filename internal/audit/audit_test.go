package audit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"appliance/internal/audit"
	"appliance/internal/binding"
	"appliance/internal/broker"
	"appliance/internal/deadletter"
	"appliance/internal/event"
	"appliance/internal/generate"
	"appliance/internal/intake"
	"appliance/internal/pg"
	"appliance/internal/testservices"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const group, pipeline = "audit-test", "persist"

// bundle is a topic, its dead letters and a ledger, on real services, to which a test does what a pipeline would.
type bundle struct {
	t              testing.TB
	ctx            context.Context
	cluster        broker.Cluster
	admin          *broker.Admin
	db             *pg.DB
	topic, letters string
	topicID        [16]byte
	now            time.Time
	epoch          int64
}

func setup(t testing.TB) *bundle {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	b := &bundle{t: t, ctx: ctx, now: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)}
	bootstrap := testservices.Kafka(t)
	b.cluster = broker.Cluster{Brokers: strings.Split(bootstrap, ",")}
	b.topic = testservices.Topic(t, bootstrap, 1, nil)
	b.letters = testservices.Topic(t, bootstrap, 3, nil)
	var err error
	b.admin, err = broker.NewAdmin(b.cluster)
	b.ok(err)
	t.Cleanup(b.admin.Close)
	conf := pg.Config{URL: testservices.Postgres(t)}
	_, err = pg.Migrate(ctx, conf)
	b.ok(err)
	b.db, err = pg.Open(ctx, conf)
	b.ok(err)
	t.Cleanup(b.db.Close)
	_, err = b.db.EnsureMonths(ctx, b.now, 1, 1)
	b.ok(err)
	found, err := b.admin.Topics(ctx, b.topic)
	b.ok(err)
	b.topicID = found[b.topic].ID
	claim, err := b.db.Claim(ctx, group, b.topic, b.topicID, 0, "test")
	b.ok(err)
	b.epoch = claim.Epoch
	return b
}

func (b *bundle) ok(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// produce puts lines onto the topic and returns them as records with their coordinates.
func (b *bundle) produce(lines ...[]byte) []event.Record {
	b.t.Helper()
	p, err := broker.NewProducer(b.cluster, broker.DeliveryTimeout)
	b.ok(err)
	defer p.Close()
	var records []event.Record
	for i, line := range lines {
		r := event.Record{
			Topic: b.topic, TopicID: b.topicID, Offset: int64(i), Key: []byte("key"), Value: line,
			Headers: []event.Header{{Key: "content-type", Value: []byte(binding.ContentType)}},
		}
		b.ok(p.Produce(b.ctx, r))
		records = append(records, r)
	}
	_, err = p.Flush(b.ctx)
	b.ok(err)
	return records
}

// store writes the events of the records as rows and moves the checkpoint.
func (b *bundle) store(next int64, records ...event.Record) {
	b.t.Helper()
	var rows []pg.Row
	for i := range records {
		r := &records[i]
		e, fault := event.DecodeRecord(r)
		if fault != nil {
			b.t.Fatal(fault)
		}
		rows = append(rows, pg.Row{
			OccurredAt: e.OccurredAt, Source: e.Source, ID: e.ID, Type: e.Type, Raw: e.Raw, SHA256: e.SHA256,
			TopicID: r.TopicID, Partition: r.Partition, Offset: r.Offset,
		})
	}
	_, err := b.db.Write(b.ctx, group, rows, []pg.Position{{Topic: b.topic, TopicID: b.topicID, Epoch: b.epoch, Next: next}})
	b.ok(err)
}

// bury publishes a dead letter of a record, in parts of at most size bytes.
func (b *bundle) bury(size int, records ...event.Record) {
	b.t.Helper()
	d, err := broker.NewDeadLetters(b.cluster, b.letters, size)
	b.ok(err)
	defer d.Close()
	var letters []deadletter.Letter
	for _, r := range records {
		letters = append(letters, deadletter.Letter{Pipeline: pipeline, Reason: event.ReasonUnpersistable, At: b.now, Record: r})
	}
	b.ok(d.Publish(b.ctx, letters))
}

func (b *bundle) audit(o audit.Options) *audit.Report {
	b.t.Helper()
	o.Now = time.Now
	r, err := audit.Run(b.ctx, audit.Sources{
		Events: b.cluster, EventsAdmin: b.admin, Letters: b.cluster, LettersAdmin: b.admin, Database: b.db,
	}, audit.Target{Pipeline: pipeline, Group: group, Topics: []string{b.topic}, DeadLetterTopic: b.letters}, o)
	b.ok(err)
	return r
}

func (b *bundle) lines(n int) [][]byte {
	b.t.Helper()
	g, err := generate.New(generate.Options{Seed: 1, Now: b.now, Total: n})
	b.ok(err)
	var lines [][]byte
	for i := range n {
		lines = append(lines, g.Line(i).Raw)
	}
	return lines
}

// awaitEnd asks until the log has that end.
func (b *bundle) awaitEnd(end int64) {
	b.t.Helper()
	for {
		logs, err := b.admin.Logs(b.ctx, b.topic)
		b.ok(err)
		if logs[intake.TP{Topic: b.topic}].End == end {
			return
		}
	}
}

func TestAllAccountedForIsProven(t *testing.T) {
	b := setup(t)
	lines := b.lines(6)
	lines[3] = []byte(strings.Replace(string(lines[3]), `"data":{`, `"data":{"text":"`+strings.Repeat("x", 40<<10)+`",`, 1))
	lines[4] = lines[1] // the same event again
	records := b.produce(lines...)
	b.store(6, records[0], records[1], records[5])
	b.bury(0, records[2])
	b.bury(16<<10, records[3]) // in parts
	b.bury(0, records[2])      // a second copy
	r := b.audit(audit.Options{})
	want := audit.Counts{Offsets: 6, Rows: 3, Duplicates: 1, DeadLetters: 2, LetterCopies: 3}
	if r.Total != want || !r.Proven || len(r.Findings) != 0 {
		t.Errorf("got  %+v proven %t %v\nwant %+v", r.Total, r.Proven, r.Findings, want)
	}
	p := r.Partitions[0]
	if p.Checkpoint == nil || *p.Checkpoint != 6 || p.Committed != nil || p.LogEnd != 6 || r.Settled {
		t.Errorf("%+v", p)
	}
}

func TestWhatIsNowhereIsListed(t *testing.T) {
	b := setup(t)
	lines := b.lines(8)
	lines[3] = []byte("no event")
	records := b.produce(lines...)
	altered := records[5]
	altered.Key = []byte("another key")
	b.store(7, records[0], records[4])
	b.bury(0, altered, records[4])
	r := b.audit(audit.Options{})
	want := audit.Counts{Offsets: 8, Rows: 2, Missing: 4, Unequal: 1, Pending: 1, LetterCopies: 2, Both: 1}
	if r.Total != want || r.Proven {
		t.Errorf("got  %+v proven %t\nwant %+v", r.Total, r.Proven, want)
	}
	var found []string
	for _, f := range r.Findings {
		found = append(found, fmt.Sprintf("%s %d…%d %s", f.Kind, f.First, f.Last, f.Detail))
	}
	all := strings.Join(found, "\n")
	for _, want := range []string{"missing 1…1 event ", "missing 2…2", "missing 3…3 no event, and no dead letter: malformed-structured", "both 4…4", "unequal 5…5", "missing 6…6"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in\n%s", want, all)
		}
	}
}

func TestPendingIsNoFailureWhereItIsAllowed(t *testing.T) {
	b := setup(t)
	records := b.produce(b.lines(3)...)
	b.store(1, records[0])
	before := [16]byte{0: 0xff} // of a topic of this name that was deleted; it is stored behind this one
	claim, err := b.db.Claim(b.ctx, group, b.topic, before, 0, "test")
	b.ok(err)
	_, err = b.db.Write(b.ctx, group, nil, []pg.Position{{Topic: b.topic, TopicID: before, Epoch: claim.Epoch, Next: 3}})
	b.ok(err)
	if r := b.audit(audit.Options{}); r.Proven || r.Total.Pending != 2 {
		t.Errorf("%+v", r.Total)
	}
	if r := b.audit(audit.Options{AllowPending: true}); !r.Proven {
		t.Errorf("%+v", r.Total)
	}
}

func TestARangeIsAllThatIsLookedAt(t *testing.T) {
	b := setup(t)
	records := b.produce(b.lines(10)...)
	b.store(10, records[4:7]...)
	from, to := int64(4), int64(7)
	r := b.audit(audit.Options{From: &from, To: &to})
	if want := (audit.Counts{Offsets: 3, Rows: 3}); r.Total != want || !r.Proven {
		t.Errorf("%+v", r.Total)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

// A transaction's marker has an offset and no record; what retention took can be neither confirmed nor refuted.
func TestMarkersAreGapsAndRetentionPrunes(t *testing.T) {
	b := setup(t)
	lines := b.lines(5)
	records := b.produce(lines[:4]...)
	client, err := kgo.NewClient(kgo.SeedBrokers(b.cluster.Brokers...), kgo.TransactionalID(b.topic))
	b.ok(err)
	defer client.Close()
	b.ok(client.BeginTransaction())
	b.ok(client.ProduceSync(b.ctx, &kgo.Record{
		Topic: b.topic, Value: lines[4], Headers: []kgo.RecordHeader{{Key: "content-type", Value: []byte(binding.ContentType)}},
	}).FirstErr())
	b.ok(client.EndTransaction(b.ctx, kgo.TryCommit))
	b.awaitEnd(6) // the marker is written behind the answer
	fifth := records[3]
	fifth.Offset, fifth.Value = 4, lines[4]
	b.store(6, records[0], fifth)
	b.bury(0, records[1])
	_, err = kadm.NewClient(client).DeleteRecords(b.ctx, kadm.Offsets{b.topic: {0: kadm.Offset{Topic: b.topic, At: 3}}})
	b.ok(err)
	from := int64(0)
	r := b.audit(audit.Options{From: &from})
	want := audit.Counts{Offsets: 6, Rows: 2, DeadLetters: 1, Unverified: 1, LetterCopies: 1, Pruned: 1, Missing: 1, Gaps: 1}
	if r.Total != want || r.Partitions[0].LogStart != 3 {
		t.Errorf("got  %+v\nwant %+v", r.Total, want)
	}
}
