package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"appliance/internal/deadletter"
	"appliance/internal/event"
	"appliance/internal/testservices"
)

// refusal is a letter of a record at an offset of the events topic's partition 0.
func (b *bundle) refusal(offset int64, reason string, headers ...event.Header) deadletter.Letter {
	return deadletter.Letter{
		Pipeline: "persist", Reason: reason, Detail: "a detail", At: time.Now(),
		Record: event.Record{
			Topic: b.vars["KAFKA_TOPIC"], Offset: offset, Timestamp: time.Now(), Value: fmt.Appendf(nil, `{"id":"e-%d"}`, offset), Headers: headers,
		},
	}
}

// deadLetter puts letters on the dead-letter topic, in parts where they are larger than maxBytes.
func (b *bundle) deadLetter(maxBytes int, letters ...deadletter.Letter) {
	b.t.Helper()
	for _, l := range letters {
		messages, err := l.Encode(maxBytes)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, m := range messages {
			b.put(b.vars["KAFKA_DLQ_TOPIC"], m.Key, m.Value, m.Headers...)
		}
	}
}

func (b *bundle) put(topic string, key, value []byte, headers ...event.Header) {
	b.t.Helper()
	r := &kgo.Record{Topic: topic, Key: key, Value: value}
	for _, h := range headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	if err := b.client().ProduceSync(b.t.Context(), r).FirstErr(); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) client(opts ...kgo.Opt) *kgo.Client {
	b.t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(strings.Split(b.vars["KAFKA_BOOTSTRAP_SERVERS"], ",")...))...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(client.Close)
	return client
}

// events returns what is on the events topic, of which n records are expected.
func (b *bundle) events(n int) []*kgo.Record {
	b.t.Helper()
	ends, err := b.admin().ListEndOffsets(b.t.Context(), b.vars["KAFKA_TOPIC"])
	if err != nil {
		b.t.Fatal(err)
	}
	total := int64(0)
	for _, o := range ends[b.vars["KAFKA_TOPIC"]] {
		total += o.Offset
	}
	if total != int64(n) {
		b.t.Fatalf("%d records were published, want %d", total, n)
	}
	var all []*kgo.Record
	client := b.client(kgo.ConsumeTopics(b.vars["KAFKA_TOPIC"]))
	for len(all) < n {
		fetched := client.PollFetches(b.t.Context())
		if err := fetched.Err(); err != nil {
			b.t.Fatal(err)
		}
		all = append(all, fetched.Records()...)
	}
	return all
}

func (b *bundle) answer(args ...string) deadletter.Answer {
	b.t.Helper()
	b.must(exitOK, append([]string{"dlq", "records", "--json"}, args...)...)
	var a deadletter.Answer
	if err := json.Unmarshal(b.out.Bytes(), &a); err != nil {
		b.t.Fatal(err)
	}
	return a
}

func (b *bundle) report(code int, args ...string) replayReport {
	b.t.Helper()
	b.must(code, append([]string{"dlq", "replay", "--json"}, args...)...)
	var r replayReport
	if err := json.Unmarshal(b.out.Bytes(), &r); err != nil {
		b.t.Fatalf("%v\n%s", err, b.out.String())
	}
	return r
}

func (b *bundle) ref(offset int64) string { return deadletter.Ref(b.vars["KAFKA_TOPIC"], 0, offset) }

func TestDLQRefusesWhatItIsNotGivenRight(t *testing.T) { // DL-10
	for _, verb := range []string{"records", "replay"} {
		for _, limit := range []string{"201", "0", "-1", "1e2", "+5", " 5", "٣", ""} {
			b := offline(t)
			b.must(exitRefused, "dlq", verb, "--limit", limit)
			b.says(&b.err, "limit")
		}
		offline(t).must(exitRefused, "dlq", verb)
		offline(t).must(exitRefused, "dlq", verb, "--limit")
		b := offline(t)
		b.must(exitRefused, "dlq", verb, "--limit", "5", "--reason", "no-tyme")
		b.says(&b.err, "no-time")
		offline(t).must(exitRefused, "dlq", verb, "--limit", "5", "--dead-letters", "x")
		offline(t).must(exitUnreachable, "dlq", verb, "--limit", "5")
	}
	offline(t).must(exitUnreachable, "dlq", "depth")
	offline(t).must(exitRefused, "dlq", "replay", "--limit", "5", "--refs", "a/0/1")
	offline(t).must(exitRefused, "dlq", "replay", "--refs", "a/0")
	offline(t).must(exitRefused, "dlq", "dept")
	b := offline(t)
	b.vars["REPLAY_ENABLED"] = "false"
	b.must(exitRefused, "dlq", "replay", "--limit", "5", "--dry-run=false")
	b.says(&b.err, "switched off")
	b.must(exitUnreachable, "dlq", "replay", "--limit", "5")
}

func TestDLQDepthAndRecordsOfAMixedTopic(t *testing.T) {
	b := setup(t)
	b.must(exitOK, "dlq", "depth")
	b.says(&b.out, "holds at most 0 dead letters")
	large := b.refusal(3, "no-time")
	large.Record.Value = []byte(strings.Repeat("x", 40_000))
	b.deadLetter(1<<20, b.refusal(1, "no-time"), b.refusal(2, "bad-attribute"), b.refusal(1, "no-time"))
	b.deadLetter(16_384, large)
	b.put(b.vars["KAFKA_DLQ_TOPIC"], nil, []byte("\x1b[2J not ours"))
	a := b.answer("--limit", "9")
	if a.Returned != 4 || a.Scanned < 7 || a.Truncated || a.TimedOut || !a.Newest {
		t.Fatalf("%+v", a)
	}
	var got []string
	for _, r := range a.Records {
		got = append(got, fmt.Sprint(r.Ref, " ", r.Readable, " ", r.Copies))
	}
	want := []string{a.Records[0].Ref + " false 1", b.ref(3) + " true 1", b.ref(1) + " true 2", b.ref(2) + " true 1"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if p := a.Records[1].Payload; p.Bytes != 40_000 || !p.Truncated || len(p.Text) != 512 || a.Records[1].Parts < 2 {
		t.Errorf("%+v", p)
	}
	if id := a.Records[2].Event; id == nil || id.ID != "e-1" {
		t.Errorf("identity %+v", id)
	}
	b.must(exitOK, "dlq", "records", "--limit", "9")
	b.says(&b.out, "4 dead letters")
	b.says(&b.out, "unreadable: ")
	if strings.Contains(b.out.String(), "\x1b") {
		t.Errorf("a payload speaks to the terminal: %q", b.out.String())
	}
	b.must(exitOK, "dlq", "depth", "--json")
	b.says(&b.out, `"outstandingIsUpperBound": true`)
	b.says(&b.out, `"maxRecords": 200`)
}

func TestDLQSaysWhatItLookedAt(t *testing.T) { // DL-09
	b := setup(t)
	b.vars["REPLAY_MAX_RECORDS"] = "10"
	for offset := range int64(12) {
		b.deadLetter(1<<20, b.refusal(offset, "no-time"))
	}
	for offset := range int64(6) {
		b.deadLetter(1<<20, b.refusal(100+offset, "bad-attribute"))
	}
	if a := b.answer("--limit", "2", "--reason", "no-time"); a.Returned != 2 || a.Records[0].Ref != b.ref(11) || a.Scanned != 10 || a.Truncated {
		t.Errorf("%+v", a)
	}
	if a := b.answer("--limit", "2", "--reason", "unconvertible"); a.Returned != 0 || a.Scanned != 10 || !a.Truncated {
		t.Errorf("%+v", a)
	}
	b.must(exitOK, "dlq", "records", "--limit", "2", "--reason", "unconvertible")
	b.says(&b.out, "older ones were not: there may be more")
	b.vars["REPLAY_POLL_TIMEOUT"] = "1 millis"
	if a := b.answer("--limit", "2"); !a.TimedOut || a.Newest {
		t.Errorf("%+v", a)
	}
	if r := b.report(exitUnreachable, "--limit", "2", "--dry-run=false"); len(r.Published) != 0 || !strings.Contains(r.Problem, "nothing was published") {
		t.Errorf("%+v", r)
	}
	b.events(0)
}

// Copies make less of a read than was asked for: it is repeated as far as it may be.
func TestDLQReadsFurtherWhereCopiesFillTheRead(t *testing.T) {
	b := setup(t)
	b.deadLetter(1<<20, b.refusal(1, "no-time"), b.refusal(2, "no-time"), b.refusal(2, "no-time"), b.refusal(2, "no-time"))
	if a := b.answer("--limit", "2"); a.Returned != 2 || a.Scanned != 4 || a.Truncated || !a.Newest {
		t.Errorf("%+v", a)
	}
}

func TestReplayIsADryRunUnlessToldOtherwise(t *testing.T) {
	b := setup(t)
	b.deadLetter(1<<20, b.refusal(2, "no-time"), b.refusal(1, "no-time"), b.refusal(3, "no-time"))
	r := b.report(exitOK, "--limit", "2")
	if !r.DryRun || len(r.Planned) != 2 || len(r.Published) != 0 || r.Planned[0].Ref != b.ref(1) || r.Planned[1].Ref != b.ref(3) {
		t.Errorf("%+v", r)
	}
	b.must(exitOK, "dlq", "replay", "--limit", "2")
	b.says(&b.out, "nothing was published")
	b.vars["REPLAY_ENABLED"] = "false"
	b.report(exitOK, "--limit", "2")
	b.events(0)
}

// DL-05 and DL-06: what comes back is the record, on the partition where it was, and nothing goes to another topic.
func TestReplayPublishesTheRecordAsItWas(t *testing.T) {
	b := setup(t)
	other := testservices.Topic(t, b.vars["KAFKA_BOOTSTRAP_SERVERS"], 1, nil)
	odd := b.refusal(7, "malformed-binary", event.Header{Key: "h", Value: []byte("1")}, event.Header{Key: "h", Value: []byte("2")},
		event.Header{Key: deadletter.HeaderAttempt, Value: []byte("1")}, event.Header{Key: "h"})
	odd.Record.Partition, odd.Record.Value = 1, []byte{0xFF, 0}
	foreign, itself, tired := b.refusal(1, "no-time"), b.refusal(2, "no-time"),
		b.refusal(3, "no-time", event.Header{Key: deadletter.HeaderAttempt, Value: []byte("many")})
	foreign.Record.Topic, itself.Record.Topic = other, b.vars["KAFKA_DLQ_TOPIC"]
	b.deadLetter(1<<20, odd, foreign, itself, tired)
	b.put(b.vars["KAFKA_DLQ_TOPIC"], nil, []byte("not ours"))
	dry := b.report(exitOK, "--limit", "9")
	r := b.report(exitOK, "--limit", "9", "--dry-run=false")
	if !slices.Equal(dry.Planned, r.Planned) || !slices.Equal(dry.Skipped, r.Skipped) {
		t.Errorf("the dry run said\n%+v, done was\n%+v", dry, r)
	}
	var skipped []string
	for _, s := range r.Skipped {
		skipped = append(skipped, string(s.Reason))
	}
	if !slices.Equal(skipped, []string{"undecodable", "budget-exhausted", "foreign-topic", "foreign-topic"}) || len(r.Published) != 1 {
		t.Fatalf("%+v", r)
	}
	got := b.events(1)[0]
	if got.Key != nil || string(got.Value) != "\xff\x00" || got.Partition != 1 {
		t.Errorf("key %v, value %x, partition %d", got.Key, got.Value, got.Partition)
	}
	want := []string{`h="1"`, `h="2"`, `h=null`, `x-worxbend-replay-attempt="2"`, fmt.Sprintf("x-worxbend-replay-of=%q", odd.Ref())}
	var headers []string
	for _, h := range got.Headers {
		value := "null"
		if h.Value != nil {
			value = fmt.Sprintf("%q", h.Value)
		}
		headers = append(headers, h.Key+"="+value)
	}
	if !slices.Equal(headers, want) {
		t.Errorf("headers %q, want %q", headers, want)
	}
	b.must(exitOK, "dlq", "replay", "--refs", odd.Ref(), "--dry-run=false")
	b.says(&b.out, "replayed 1 of 1, skipped 0")
	b.events(2)
}

func TestNamedRecordsAreAllOrNothing(t *testing.T) {
	b := setup(t)
	b.vars["REPLAY_MAX_RECORDS"] = "3"
	for offset := range int64(5) {
		b.deadLetter(1<<20, b.refusal(offset, "no-time", event.Header{Key: deadletter.HeaderAttempt, Value: []byte{byte('0' + offset)}}))
	}
	r := b.report(exitRefused, "--refs", b.ref(2)+","+b.ref(0), "--dry-run=false")
	if len(r.Published) != 0 || !slices.Equal(r.Missing, []string{b.ref(0)}) || !strings.Contains(r.Problem, "older than the 3 records") {
		t.Errorf("%+v", r)
	}
	r = b.report(exitRefused, "--refs", b.ref(2)+","+b.ref(3))
	if len(r.Missing) != 0 || len(r.Skipped) != 1 || r.Skipped[0].Ref != b.ref(3) || !strings.Contains(r.Problem, "budget-exhausted") {
		t.Errorf("%+v", r)
	}
	b.says(&b.err, "all or nothing")
	b.events(0)
	b.must(exitOK, "dlq", "replay", "--refs", b.ref(2), "--dry-run=false")
	b.events(1)
}

// The broker refuses a record in the middle: those before it are there, and the report says where it stopped.
func TestReplayStopsWhereTheBrokerRefuses(t *testing.T) {
	b := setup(t)
	b.vars["KAFKA_TOPIC"] = testservices.Topic(t, b.vars["KAFKA_BOOTSTRAP_SERVERS"], 1, map[string]string{"max.message.bytes": "2000"})
	large := b.refusal(2, "no-time")
	random := uint64(1)
	for range 4000 {
		random = random*6364136223846793005 + 1442695040888963407
		large.Record.Value = append(large.Record.Value, byte(random>>56))
	}
	b.deadLetter(1<<20, b.refusal(1, "no-time"), large, b.refusal(3, "no-time"))
	r := b.report(exitFailure, "--limit", "3", "--dry-run=false")
	if len(r.Published) != 1 || r.StoppedAt != b.ref(2) || !strings.Contains(b.err.String(), "stopped at "+b.ref(2)) {
		t.Errorf("%+v\n%s", r, b.err.String())
	}
	b.events(1)
}

func TestDLQSaysThatTheTopicIsAbsent(t *testing.T) {
	b := setup(t)
	b.vars["KAFKA_DLQ_TOPIC"] = "absent"
	for _, args := range [][]string{{"depth"}, {"records", "--limit", "1"}, {"replay", "--limit", "1"}} {
		b.must(exitFailure, append([]string{"dlq"}, args...)...)
		b.says(&b.err, "topic absent does not exist")
	}
}
