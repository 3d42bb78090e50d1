package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"appliance/internal/testservices"
)

// The broker dies with requests on their way, which nobody will answer any more.
func TestProduceGivesUpWhenTheBrokerDiesInMidLoad(t *testing.T) {
	kafka := testservices.StartKafka(t, testservices.KafkaOptions{})
	b := offline(t)
	b.vars["KAFKA_BOOTSTRAP_SERVERS"] = kafka.BootstrapServers
	b.vars["KAFKA_TOPIC"] = "events"
	admin := b.admin()
	if _, err := admin.CreateTopic(t.Context(), 2, 1, nil, "events"); err != nil {
		t.Fatal(err)
	}
	b.must(exitOK, "generate", "-n", "200", "--seed", "1")
	b.in = strings.Repeat(b.out.String(), 500)
	ended := make(chan int)
	go func() { ended <- b.call("produce", "--timeout", "5s", "--rate", "5000", "--json", "-") }()
	for arrived := int64(0); arrived < 5000; {
		ends, err := admin.ListEndOffsets(t.Context(), "events")
		if err != nil {
			t.Fatal(err)
		}
		arrived = 0
		for _, o := range ends["events"] {
			arrived += o.Offset
		}
	}
	kafka.Kill()
	killed := time.Now()
	code := <-ended
	// The last records were queued after the death and have 5 s of their own, and the client looks at them as it tries again.
	if took := time.Since(killed); code != exitUnreachable || took > 30*time.Second {
		t.Errorf("exit code %d after %v\n%s", code, took, b.err.String())
	}
	var sent produced
	if err := json.Unmarshal(b.out.Bytes(), &sent); err != nil || sent.Produced < 1000 || sent.Produced >= sent.Lines || sent.Lines > 99_000 {
		t.Errorf("%+v %v", sent, err)
	}
	b.says(&b.err, "were confirmed, and whether the other")
	b.says(&b.err, "safe, since a ledger takes an event once")
}
