package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"appliance/internal/deadletter"
	"appliance/internal/event"
	"appliance/internal/testservices"
)

func newest(t *testing.T, bootstrap, topic string, limit int) []deadletter.Tail {
	t.Helper()
	tails, err := Newest(t.Context(), newAdmin(t, bootstrap), Cluster{Brokers: strings.Split(bootstrap, ",")}, topic, limit, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return tails
}

func shape(tails []deadletter.Tail) string {
	var out []string
	for _, t := range tails {
		var at []int64
		for _, r := range t.Records {
			at = append(at, r.Offset)
		}
		out = append(out, fmt.Sprintf("%d: %d…%d…%d %v %v", t.Partition, t.Start, t.From, t.End, t.Whole, at))
	}
	return strings.Join(out, "; ")
}

func TestNewestReadsTheEndOfEachPartition(t *testing.T) {
	bootstrap := testservices.Kafka(t)
	topic := testservices.Topic(t, bootstrap, 2, nil)
	put(t, bootstrap, topic, 0, "a", "b", "c", "d", "e")
	if got := shape(newest(t, bootstrap, topic, 2)); got != "0: 0…3…5 true [3 4]; 1: 0…0…0 true []" {
		t.Error(got)
	}
	_, err := newAdmin(t, bootstrap).adm.DeleteRecords(t.Context(), kadm.OffsetsFromRecords(kgo.Record{Topic: topic, Offset: 4 - 1}))
	if err != nil {
		t.Fatal(err)
	}
	if got := shape(newest(t, bootstrap, topic, 4)); got != "0: 4…4…5 true [4]; 1: 0…0…0 true []" {
		t.Error(got)
	}
}

// A transaction leaves markers and records that were taken back, and one that is open has an end that cannot be read yet.
func TestNewestReadsWhatTransactionsCommitted(t *testing.T) {
	bootstrap := testservices.Kafka(t)
	topic := testservices.Topic(t, bootstrap, 1, nil)
	transaction(t, bootstrap, topic, kgo.TryCommit, "a", "b") // 0, 1 and a marker at 2
	transaction(t, bootstrap, topic, kgo.TryAbort, "x", "y")  // 3, 4 and a marker at 5: taken back
	if got := shape(newest(t, bootstrap, topic, 5)); got != "0: 0…1…6 true [1]" {
		t.Error(got)
	}
	if got := shape(newest(t, bootstrap, topic, 2)); got != "0: 0…4…6 true []" {
		t.Error(got)
	}
	openTransaction(t, bootstrap, topic) // 6
	put(t, bootstrap, topic, 0, "later")
	if got := shape(newest(t, bootstrap, topic, 5)); got != "0: 0…1…6 true [1]" {
		t.Error(got)
	}
}

func openTransaction(t *testing.T, bootstrap, topic string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.DefaultProduceTopic(topic), kgo.TransactionalID(topic+".open"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(t.Context(), kgo.StringRecord("open")).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// A compacted topic has fewer records than offsets: the read ends where the log does all the same.
func TestNewestReadsACompactedTopic(t *testing.T) {
	bootstrap := testservices.Kafka(t)
	topic := testservices.Topic(t, bootstrap, 1, map[string]string{
		"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01", "max.compaction.lag.ms": "1000",
	})
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.DefaultProduceTopic(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	begun := time.Now().Add(-time.Hour)
	for i := range 20 { // each in a segment of its own, and all under the same key
		record := &kgo.Record{Key: []byte("k"), Value: []byte("v"), Timestamp: begun.Add(time.Duration(i) * time.Minute)}
		if err := client.ProduceSync(t.Context(), record).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(500 * time.Millisecond) {
		tails := newest(t, bootstrap, topic, 10)
		if !tails[0].Whole {
			t.Fatalf("the end was not reached: %s", shape(tails))
		}
		if got := shape(tails); got == "0: 0…10…20 true [18 19]" || got == "0: 0…10…20 true [19]" {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("nothing was compacted: %s", got)
		}
	}
}

func TestAReadThatTakesTooLongSaysWhatItDidNotReach(t *testing.T) {
	bootstrap := testservices.Kafka(t)
	topic := testservices.Topic(t, bootstrap, 2, nil)
	put(t, bootstrap, topic, 1, "a", "b")
	cluster := Cluster{Brokers: strings.Split(bootstrap, ",")}
	tails, err := Newest(t.Context(), newAdmin(t, bootstrap), cluster, topic, 5, time.Nanosecond)
	if err != nil || shape(tails) != "0: 0…0…0 true []; 1: 0…0…2 false []" {
		t.Errorf("%s %v", shape(tails), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Newest(ctx, newAdmin(t, bootstrap), cluster, topic, 5, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that gave up: %v", err)
	}
}

func replayOf(topic string, partition int32, offset int64, value []byte) deadletter.Replay {
	return deadletter.Replay{Ref: deadletter.Ref(topic, partition, offset), Attempt: 1, Record: event.Record{
		Topic: topic, Partition: partition, Offset: offset, Value: value,
		Headers: []event.Header{{Key: "h", Value: []byte("1")}, {Key: "h"}, {Key: "h", Value: []byte{}}},
	}}
}

// DL-05: null and empty, repeats and order arrive; the record is where it was, without a key too.
func TestAReplayArrivesAsItWas(t *testing.T) {
	bootstrap := testservices.Kafka(t)
	topic := testservices.Topic(t, bootstrap, 3, nil)
	replayer := newReplayer(t, bootstrap)
	empty := replayOf(topic, 2, 8, []byte{})
	empty.Record.Key = []byte{}
	done, err := replayer.Publish(t.Context(), []deadletter.Replay{replayOf(topic, 2, 7, nil), empty, replayOf(topic, 4, 1, []byte{0xFF, 0})})
	if err != nil || len(done) != 3 || done[1] != (Published{Ref: topic + "/2/8", Attempt: 1, Topic: topic, Partition: 2, Offset: 1}) || done[2].Partition != 1 {
		t.Fatalf("%+v %v", done, err)
	}
	tails := newest(t, bootstrap, topic, 9)
	if got := shape(tails); got != "0: 0…0…0 true []; 1: 0…0…1 true [0]; 2: 0…0…2 true [0 1]" {
		t.Fatal(got)
	}
	null, void := tails[2].Records[0], tails[2].Records[1]
	if null.Key != nil || null.Value != nil || void.Key == nil || void.Value == nil || len(void.Key)+len(void.Value) > 0 {
		t.Errorf("null %#v %#v, empty %#v %#v", null.Key, null.Value, void.Key, void.Value)
	}
	h := null.Headers
	if len(h) != 3 || string(h[0].Value) != "1" || h[1].Value != nil || h[2].Value == nil {
		t.Errorf("headers %#v", h)
	}
	if string(tails[1].Records[0].Value) != "\xff\x00" {
		t.Errorf("value %x", tails[1].Records[0].Value)
	}
}

func TestAReplayStopsAtTheFirstRefusal(t *testing.T) {
	bootstrap := testservices.Kafka(t)
	topic := testservices.Topic(t, bootstrap, 1, map[string]string{"max.message.bytes": "1000"})
	random := make([]byte, 0, 5000) // that no compression makes small
	for i := range uint32(5000) {
		random = append(random, byte((i*2654435761)>>13))
	}
	done, err := newReplayer(t, bootstrap).Publish(t.Context(), []deadletter.Replay{
		replayOf(topic, 0, 1, []byte("a")), replayOf(topic, 0, 2, random), replayOf(topic, 0, 3, []byte("c")),
	})
	stopped, ok := errors.AsType[*StoppedError](err)
	if !ok || stopped.Ref != topic+"/0/2" || stopped.Unknown || !errors.Is(err, kerr.MessageTooLarge) || len(done) != 1 {
		t.Fatalf("%+v %v", done, err)
	}
	if got := shape(newest(t, bootstrap, topic, 9)); got != "0: 0…0…1 true [0]" {
		t.Error(got)
	}
}

func TestAReplayThatIsGivenUpIsUnknown(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := newReplayer(t, "127.0.0.1:1").Publish(ctx, []deadletter.Replay{replayOf("a", 0, 1, nil)})
	if stopped, ok := errors.AsType[*StoppedError](err); !ok || !stopped.Unknown || !strings.Contains(err.Error(), "published or not") {
		t.Errorf("%v", err)
	}
}

func newReplayer(t *testing.T, bootstrap string) *Replayer {
	t.Helper()
	r, err := NewReplayer(Cluster{Brokers: strings.Split(bootstrap, ",")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// put produces values to one partition.
func put(t *testing.T, bootstrap, topic string, partition int32, values ...string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, v := range values {
		record := &kgo.Record{Topic: topic, Partition: partition, Value: []byte(v)}
		if err := client.ProduceSync(t.Context(), record).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}
