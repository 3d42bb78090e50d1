package kafka_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"appliance/plugins/kafka"
)

const least = "cluster: main\ntopics: [t]\ngroup: g\n"

func parse(t *testing.T, yaml string) (kafka.Config, error) {
	t.Helper()
	conf, err := kafka.Spec().ParseYAML(yaml, service.NewEnvironment())
	if err != nil {
		t.Fatalf("specification refuses %q: %v", yaml, err)
	}
	return kafka.Parse(conf)
}

func TestDefaultsAreTheDocumentedOnes(t *testing.T) {
	got, err := parse(t, least)
	want := kafka.Config{
		Cluster: "main", Topics: []string{"t"}, Group: "g", Lanes: 4, Start: kafka.StartEarliest,
		Batch:  kafka.Batch{Size: 500, MaxSize: 5000, Window: 250 * time.Millisecond},
		Commit: kafka.Commit{MaxBatch: 1000, MaxInterval: 5 * time.Second, Parallelism: 1},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestEveryPropertyArrives(t *testing.T) {
	got, err := parse(t, least+`properties:
  client.id: me
  client.rack: r
  fetch.min.bytes: "1"
  fetch.max.bytes: "2"
  max.partition.fetch.bytes: "3"
  fetch.max.wait.ms: "40"
  session.timeout.ms: "5000"
  heartbeat.interval.ms: "600"
  max.poll.interval.ms: "700"
  request.timeout.ms: "800"
  metadata.max.age.ms: "900"
  retry.backoff.ms: "10"
  isolation.level: read_committed
  group.protocol: classic
`)
	want := kafka.Properties{
		ClientID: "me", ClientRack: "r", FetchMinBytes: 1, FetchMaxBytes: 2, FetchMaxPartitionBytes: 3,
		FetchMaxWait: 40 * time.Millisecond, SessionTimeout: 5 * time.Second, HeartbeatInterval: 600 * time.Millisecond,
		RebalanceTimeout: 700 * time.Millisecond, RequestTimeout: 800 * time.Millisecond, MetadataMaxAge: 900 * time.Millisecond,
		RetryBackoff: 10 * time.Millisecond,
	}
	if err != nil || got.Properties != want {
		t.Errorf("%+v, %v", got.Properties, err)
	}
	const fixed = 2 // isolation.level and group.protocol take one value each and arrive nowhere
	if n := reflect.TypeFor[kafka.Properties]().NumField(); n+fixed != len(kafka.PropertyNames()) {
		t.Errorf("%d properties have %d names", n, len(kafka.PropertyNames()))
	}
}

func TestWhatIsFixedGivesItsReason(t *testing.T) {
	for yaml, why := range map[string]string{
		"isolation.level: read_uncommitted": "a record of an aborted transaction never was",
		"group.protocol: consumer":          "not under the protocol of KIP-848",
		"heartbeat.interval.ms: '6000'":     "at most half of session.timeout.ms (10000)",
	} {
		if _, err := parse(t, least+"properties: {"+yaml+"}\n"); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", yaml, err, why)
		}
	}
}

func TestWhatDecidesCorrectnessIsRefused(t *testing.T) {
	for name, why := range kafka.RefusedProperties() {
		_, err := parse(t, least+"properties:\n  "+name+": x\n")
		var refusal *kafka.ArgumentError
		if !errors.As(err, &refusal) || refusal.Argument() != "properties."+name || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, fixed := range []string{"enable.auto.commit", "auto.offset.reset", "acks", "enable.idempotence"} {
		if kafka.RefusedProperties()[fixed] == "" {
			t.Errorf("%s is not refused", fixed)
		}
	}
}

func TestEachBoundNamesItsArgument(t *testing.T) {
	for yaml, path := range map[string]string{
		"cluster: ''\ntopics: [t]\ngroup: g\n":                      "cluster",
		"cluster: c\ntopics: []\ngroup: g\n":                        "topics",
		"cluster: c\ntopics: [t, t]\ngroup: g\n":                    "topics",
		"cluster: c\ntopics: ['']\ngroup: g\n":                      "topics",
		"cluster: c\ntopics: [t]\ngroup: ''\n":                      "group",
		least + "lanes: 0\n":                                        "lanes",
		least + "lanes: 65\nbatch: {size: 1, max_size: 1}\n":        "lanes",
		least + "batch: {size: 0}\n":                                "batch.size",
		least + "batch: {size: 501, max_size: 500}\n":               "batch.max_size",
		least + "lanes: 5\nbatch: {size: 1, max_size: 50000}\n":     "batch.max_size",
		least + "batch: {window: 0s}\n":                             "batch.window",
		least + "batch: {window: soon}\n":                           "batch.window",
		least + "batch: {window: 2m}\n":                             "batch.window",
		least + "commit: {max_batch: 0}\n":                          "commit.max_batch",
		least + "commit: {max_interval: 1ms}\n":                     "commit.max_interval",
		least + "commit: {max_interval: soon}\n":                    "commit.max_interval",
		least + "commit: {parallelism: 2}\n":                        "commit.parallelism",
		least + "start: middle\n":                                   "start",
		least + "properties: {fetch.max.bytes: '0'}\n":              "properties.fetch.max.bytes",
		least + "properties: {session.timeout.ms: '9999999999'}\n":  "properties.session.timeout.ms",
		least + "properties: {group.protocol: eager}\n":             "properties.group.protocol",
		least + "properties: {isolation.level: read_uncommitted}\n": "properties.isolation.level",
		least + "properties: {heartbeat.interval.ms: '9000'}\n":     "properties.heartbeat.interval.ms",
		least + "properties: {metadata.max.age.ms: '9999999'}\n":    "properties.metadata.max.age.ms",
		least + "properties: {request.timeout.ms: '1'}\n":           "properties.request.timeout.ms",
		least + "properties: {client.id: ''}\n":                     "properties.client.id",
		least + "properties: {fetch.max.byte: '1'}\n":               "properties.fetch.max.byte",
	} {
		_, err := parse(t, yaml)
		var refusal *kafka.ArgumentError
		if !errors.As(err, &refusal) || refusal.Argument() != path {
			t.Errorf("%q: %v, not of %s", yaml, err, path)
		}
	}
}
