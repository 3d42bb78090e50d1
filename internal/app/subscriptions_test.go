package app

import (
	"errors"
	"log/slog"
	"testing"

	"appliance/internal/broker"
	"appliance/internal/run"
	"appliance/plugins/kafka"
)

// A subscription that opens too late would be a member of the group that nobody reads and nobody leaves.
func TestASubscriptionIsJoinedOnceAndForALiveRunOnly(t *testing.T) {
	s := newSubscriptions(&resources{}, clock{}, slog.New(slog.DiscardHandler))
	opened := 0
	open := func() (*broker.Subscription, error) { opened++; return &broker.Subscription{}, nil }
	live, over := run.New("p"), run.New("p")
	over.Fail(errBoom)
	if _, err := s.join("k", over.Cause, open); !errors.Is(err, errBoom) || opened != 0 {
		t.Fatalf("%v, opened %d times for a run that is over", err, opened)
	}
	first, err := s.join("k", live.Cause, open)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := s.join("k", live.Cause, open); err != nil || second != first || opened != 1 {
		t.Fatalf("%v, opened %d times: the first would stay in the group", err, opened)
	}
	s.closed = true
	if _, err := s.join("other", live.Cause, open); err == nil || opened != 1 {
		t.Fatalf("%v, opened %d times while the process shuts down", err, opened)
	}
}

func TestASubscriptionIsKeyedByClusterGroupAndTopics(t *testing.T) {
	base := kafka.Config{Cluster: "c", Group: "g", Topics: []string{"a", "b"}}
	key := subscriptionKey(base)
	turned := base
	turned.Topics, turned.Lanes = []string{"b", "a"}, 9
	if subscriptionKey(turned) != key {
		t.Error("the order of topics, or a tuning, makes it another")
	}
	for name, other := range map[string]kafka.Config{
		"cluster": {Cluster: "d", Group: "g", Topics: base.Topics},
		"group":   {Cluster: "c", Group: "h", Topics: base.Topics},
		"topics":  {Cluster: "c", Group: "g", Topics: []string{"a"}},
		"a joint": {Cluster: "c", Group: "g", Topics: []string{"ab"}},
	} {
		if subscriptionKey(other) == key {
			t.Errorf("another %s is the same", name)
		}
	}
}
