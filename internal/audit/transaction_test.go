package audit_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"appliance/internal/audit"
	"appliance/internal/binding"
)

// begin opens a transaction of one record, and leaves it open until the test ends.
func (b *bundle) begin(topic string, line []byte) {
	b.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.cluster.Brokers...), kgo.TransactionalID(topic+".open"))
	b.ok(err)
	b.t.Cleanup(client.Close)
	b.ok(client.BeginTransaction())
	b.ok(client.ProduceSync(b.ctx, &kgo.Record{
		Topic: topic, Value: line, Headers: []kgo.RecordHeader{{Key: "content-type", Value: []byte(binding.ContentType)}},
	}).FirstErr())
	b.t.Cleanup(func() { b.ok(client.EndTransaction(b.ctx, kgo.TryAbort)) })
}

// What lies behind the beginning of an open transaction cannot be read, whoever wrote it: the range ends before it.
func TestAnOpenTransactionEndsTheRange(t *testing.T) {
	b := setup(t)
	lines := b.lines(4)
	records := b.produce(lines[:2]...)
	b.begin(b.topic, lines[2])
	b.produce(lines[3])
	b.store(2, records[0])
	b.bury(0, records[1])
	b.begin(b.letters, lines[3])
	whole := b.ctx
	var cancel context.CancelFunc
	b.ctx, cancel = context.WithTimeout(whole, 20*time.Second) // the broker ends the transactions after 40 s
	defer cancel()
	r := b.audit(audit.Options{})
	b.ctx = whole
	want := audit.Counts{Offsets: 2, Rows: 1, DeadLetters: 1, LetterCopies: 1}
	if r.Total != want || !r.Proven {
		t.Errorf("got  %+v proven %t\nwant %+v", r.Total, r.Proven, want)
	}
	if p := r.Partitions[0]; p.To != 2 || p.StableEnd != 2 || p.LogEnd != 4 || p.Settled || r.Settled {
		t.Errorf("%+v", p)
	}
}
