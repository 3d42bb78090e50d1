package killtest

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"appliance/internal/testservices"
)

var full = flag.Bool("full", false, "the whole load: 500,000 events and 20 kills")

// size is how much is loaded and how often something is killed.
func size() (events, kills int) {
	if *full {
		return 500_000, 20
	}
	return 40_000, 5
}

// poisonEvery makes 2,500 of 500,000 events poison.
const poisonEvery = 200

// batchesAKill is lanes × the largest batch: what one kill can leave to be read again.
const batchesAKill = 4 * 5000

func newSetting(t *testing.T, kafka, postgres string, partitions int32) setting {
	t.Helper()
	topic := testservices.Topic(t, kafka, partitions, nil)
	dlq := testservices.Topic(t, kafka, 3, nil)
	return setting{kafka: kafka, postgres: postgres, topic: topic, dlq: dlq, group: topic + "-group", index: topic + "-index"}
}

// A single appliance, killed at random moments while the load goes on. A static member takes its place back at once, so
// that every kill hits a working one.
func TestKillTheAppliance(t *testing.T) {
	events, kills := size()
	s := newSetting(t, testservices.Kafka(t), testservices.Postgres(t), 12)
	l := newLoad(t, s.kafka, s.topic, events, poisonEvery)
	for kill := range kills {
		l.upTo(t.Context(), t, events*(kill+1)/(kills+1))
		a := start(t, s, map[string]string{"KAFKA_INSTANCE_ID": "one"})
		a.awaitReady(90 * time.Second)
		time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond)
		a.kill()
	}
	l.upTo(t.Context(), t, events)
	a := start(t, s, map[string]string{"KAFKA_INSTANCE_ID": "one"})
	finish(t, s, l, kills, a)
}

// finish waits until all is done, drains the appliances, and counts.
func finish(t *testing.T, s setting, l *load, kills int, replicas ...*appliance) {
	t.Helper()
	admin := newAdmin(t, s.kafka)
	await(t, 5*time.Minute, "everything is committed", func() bool { return drained(t.Context(), admin, s) }, replicas[0].log)
	for _, a := range replicas {
		if code := a.term(); code != 0 {
			t.Errorf("exit code %d after SIGTERM:\n%s", code, a.log.tail(20))
		}
	}
	countByID(t, s, l, kills)
	auditAgrees(t, s)
}

// auditAgrees: the appliance's own proof comes to the same result.
func auditAgrees(t *testing.T, s setting) {
	t.Helper()
	out, code := verb(t, s, "audit", "--json")
	var proof struct {
		Proven   bool           `json:"proven"`
		Settled  bool           `json:"settled"`
		Findings []any          `json:"findings"`
		Total    map[string]int `json:"total"`
	}
	if err := json.Unmarshal([]byte(out), &proof); err != nil {
		t.Fatalf("audit: %v in %q", err, out)
	}
	t.Logf("audit, exit code %d: %v", code, proof.Total)
	if code != 0 || !proof.Proven || !proof.Settled || len(proof.Findings) != 0 {
		t.Errorf("audit ended with %d: %s", code, out)
	}
}

// Three replicas of one group, one of them killed at a time and started again.
func TestKillOneOfThreeReplicas(t *testing.T) {
	events, kills := size()
	kills = max(3, kills/2)
	s := newSetting(t, testservices.Kafka(t), testservices.Postgres(t), 12)
	l := newLoad(t, s.kafka, s.topic, events, poisonEvery)
	l.upTo(t.Context(), t, events/(kills+1))
	name := func(i int) map[string]string { return map[string]string{"HOSTNAME": fmt.Sprintf("replica-%d", i)} }
	replicas := make([]*appliance, 3)
	for i := range replicas {
		replicas[i] = start(t, s, name(i))
	}
	for _, a := range replicas {
		a.awaitReady(2 * time.Minute)
	}
	for kill := range kills {
		victim := kill % len(replicas)
		l.upTo(t.Context(), t, events*(kill+2)/(kills+1))
		time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond)
		replicas[victim].kill()
		time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond)
		replicas[victim] = start(t, s, name(victim))
	}
	l.upTo(t.Context(), t, events)
	finish(t, s, l, kills, replicas...)
}
