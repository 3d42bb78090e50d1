package cloudevents

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"github.com/redpanda-data/benthos/v4/public/service"
	"go.uber.org/goleak"

	"appliance/internal/carrier"
	"appliance/internal/event"
	"appliance/internal/intake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const good = `{"specversion":"1.0","id":"a-1","source":"/s","type":"com.example.t","subject":"x","time":"2026-11-30T09:10:11Z","data":{"n":1e3}}`

func structured(value string) event.Record {
	return event.Record{Value: []byte(value), Headers: []event.Header{{Key: "content-type", Value: []byte("application/cloudevents+json")}}}
}

func binary(payload string) event.Record {
	r := event.Record{Value: []byte(payload)}
	for _, h := range [][2]string{
		{"content-type", "text/plain"},
		{"ce_specversion", "1.0"},
		{"ce_id", "b-1"},
		{"ce_source", "/s"},
		{"ce_type", "t"},
		{"ce_time", "2026-11-30T09:10:11Z"},
	} {
		r.Headers = append(r.Headers, event.Header{Key: h[0], Value: []byte(h[1])})
	}
	return r
}

// messages makes of records what the kafka input makes of them.
func messages(records ...event.Record) service.MessageBatch {
	batch := &intake.Batch{Spans: []intake.Span{{Records: records}}}
	out := make(service.MessageBatch, len(records))
	for i := range records {
		c := carrier.Carrier{Batch: batch, Index: i}
		out[i] = service.NewMessage(records[i].Value).WithContext(carrier.With(context.Background(), c))
	}
	return out
}

func newProcessor(t testing.TB, yaml string) *processor {
	t.Helper()
	conf, err := Spec().ParseYAML(yaml, service.NewEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse(conf)
	if err != nil {
		t.Fatal(err)
	}
	return &processor{conf: c, log: service.MockResources().Logger(), record: event.DecodeRecord, json: event.DecodeJSON}
}

func process(t testing.TB, p *processor, batch service.MessageBatch) service.MessageBatch {
	t.Helper()
	out, err := p.ProcessBatch(context.Background(), batch)
	if err != nil || len(out) != 1 || len(out[0]) != len(batch) {
		t.Fatalf("gave %d batches and %v, want the one batch and no error", len(out), err)
	}
	return out[0]
}

func bytesOf(t testing.TB, m *service.Message) string {
	t.Helper()
	b, err := m.AsBytes()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAGoodRecordBecomesItsEvent(t *testing.T) {
	out := process(t, newProcessor(t, ``), messages(structured(good), binary("hello")))
	for i, want := range []string{good, `{"specversion":"1.0","id":"b-1","source":"/s","type":"t","time":"2026-11-30T09:10:11Z",` +
		`"datacontenttype":"text/plain","data":"hello"}`} {
		c, ok := carrier.From(out[i].Context())
		if !ok || c.Event == nil || c.Fault != nil || c.Index != i {
			t.Fatalf("message %d carries %+v", i, c)
		}
		if got := bytesOf(t, out[i]); got != want || string(c.Event.Raw) != want {
			t.Errorf("message %d is %s, want %s", i, got, want)
		}
		if out[i].GetError() != nil {
			t.Errorf("message %d is marked as failed: %v", i, out[i].GetError())
		}
	}
}

func TestABadRecordGoesOnUnchangedWithItsReason(t *testing.T) {
	out := process(t, newProcessor(t, ``), messages(structured(good), structured(`{"data":"\ud83d"}`), event.Record{}, structured(good)))
	for i, reason := range []string{"", event.ReasonUnstorableValue, event.ReasonMissingAttribute, ""} {
		c, _ := carrier.From(out[i].Context())
		switch {
		case (c.Event == nil) == (c.Fault == nil):
			t.Errorf("message %d carries both or neither: %+v", i, c)
		case c.Fault != nil && c.Fault.Reason != reason, c.Fault == nil && reason != "":
			t.Errorf("message %d carries %v, want %q", i, c.Fault, reason)
		case bytesOf(t, out[i]) != string(c.Record().Value):
			t.Errorf("message %d was changed to %q", i, bytesOf(t, out[i]))
		case out[i].GetError() != nil:
			t.Errorf("message %d is marked as failed, a dead letter must not depend on error handling", i)
		}
	}
}

func TestAPanicOfTheDecoderIsADeadLetterOfOneRecord(t *testing.T) {
	p := newProcessor(t, ``)
	p.record = func(r *event.Record) (*event.Event, *event.Fault) {
		if len(r.Value) == 0 {
			panic("index out of range")
		}
		return event.DecodeRecord(r)
	}
	out := process(t, p, messages(structured(good), structured(""), structured(good)))
	for i := range out {
		c, _ := carrier.From(out[i].Context())
		if i != 1 {
			if c.Event == nil {
				t.Errorf("neighbour %d was lost: %v", i, c.Fault)
			}
			continue
		}
		if c.Event != nil || c.Fault == nil || c.Fault.Reason != event.ReasonUnconvertible ||
			!strings.Contains(c.Fault.Detail, "index out of range") {
			t.Errorf("carries %+v", c)
		}
	}
}

func TestAMessageWithoutARecordIsReadAsAStructuredEvent(t *testing.T) {
	out := process(t, newProcessor(t, `metadata: true`),
		service.MessageBatch{service.NewMessage([]byte(good)), service.NewMessage([]byte(`{}`))})
	if err := out[0].GetError(); err != nil || bytesOf(t, out[0]) != good {
		t.Errorf("the good one: %v, %s", err, bytesOf(t, out[0]))
	}
	if err := out[1].GetError(); err == nil || !strings.Contains(err.Error(), "missing-attribute") {
		t.Errorf("the bad one is not marked: %v", err)
	}
	if reason, _ := out[1].MetaGet("fault_reason"); reason != event.ReasonMissingAttribute {
		t.Errorf("fault_reason is %q", reason)
	}
}

func TestMetadataIsSetOnRequestOnly(t *testing.T) {
	for yaml, want := range map[string]string{`metadata: true`: "com.example.t", ``: "", `metadata: false`: ""} {
		out := process(t, newProcessor(t, yaml), messages(structured(good)))
		if got, _ := out[0].MetaGet("ce_type"); got != want {
			t.Errorf("with %q ce_type is %q, want %q", yaml, got, want)
		}
		if _, found := out[0].MetaGet("ce_datacontenttype"); found {
			t.Errorf("with %q an absent attribute is metadata", yaml)
		}
	}
}

func environment(t *testing.T) *service.Environment {
	t.Helper()
	env := service.NewEnvironment()
	if err := Register(env, Deps{}); err != nil {
		t.Fatal(err)
	}
	return env
}

func TestAnUnknownArgumentIsRefused(t *testing.T) {
	b := environment(t).NewStreamBuilder()
	if err := b.AddProcessorYAML("cloudevents_decode: {metadatta: true}"); err == nil {
		t.Error("accepted")
	}
}

// Through the engine itself: order and count are kept, and the engine's own language sees the metadata.
func TestAStreamRoutesByMetadata(t *testing.T) {
	b := environment(t).NewStreamBuilder()
	b.SetThreads(1)
	b.SetLogger(slog.New(slog.DiscardHandler))
	for _, yaml := range []string{
		"cloudevents_decode: {metadata: true}",
		`mapping: 'root = if meta("ce_type").or("").has_prefix("com.example.") { deleted() }'`,
	} {
		if err := b.AddProcessorYAML(yaml); err != nil {
			t.Fatal(err)
		}
	}
	send, err := b.AddBatchProducerFunc()
	if err != nil {
		t.Fatal(err)
	}
	var lock sync.Mutex
	var got []carrier.Carrier
	if err := b.AddBatchConsumerFunc(func(_ context.Context, batch service.MessageBatch) error {
		lock.Lock()
		defer lock.Unlock()
		for _, m := range batch {
			c, _ := carrier.From(m.Context())
			got = append(got, c)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	stream, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- stream.Run(context.Background()) }()
	if err := send(context.Background(), messages(structured(good), binary("x"), structured("{"), structured(good))); err != nil {
		t.Error(err)
	}
	if err := stream.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(got) != 2 || got[0].Event == nil || got[0].Event.ID != "b-1" || got[1].Fault == nil {
		t.Errorf("arrived: %+v", got)
	}
}

func TestTheExampleOfTheSpecBuilds(t *testing.T) {
	for _, example := range examples(t) {
		if err := environment(t).NewStreamBuilder().SetYAML(example); err != nil {
			t.Errorf("%v in\n%s", err, example)
		}
	}
}

func benchmarkProcess(b *testing.B, yaml string) {
	b.Helper()
	p := newProcessor(b, yaml)
	records := make([]event.Record, 500)
	for i := range records {
		records[i] = structured(good)
	}
	b.ReportAllocs()
	for b.Loop() {
		process(b, p, messages(records...))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(records)), "ns/record")
}

func BenchmarkProcess(b *testing.B)             { benchmarkProcess(b, ``) }
func BenchmarkProcessWithMetadata(b *testing.B) { benchmarkProcess(b, `metadata: true`) }

// BenchmarkTypeByParsing is what a pipeline pays that asks for this.type instead of the metadata.
func BenchmarkTypeByParsing(b *testing.B) {
	for b.Loop() {
		if _, err := service.NewMessage([]byte(good)).AsStructured(); err != nil {
			b.Fatal(err)
		}
	}
}
