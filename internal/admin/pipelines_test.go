package admin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestTheConsumerIsShownWithItsOffsetsPerPartition(t *testing.T) {
	b := setup(t)
	read := bearerOf(b.mint(t, "admin:read"))
	b.state.pipelines = []Pipeline{
		{Name: "dlq", State: "running"},
		{Name: "persist", State: "backoff", Since: time.Date(2026, 11, 15, 1, 2, 3, 0, time.UTC), Restarts: 3, LastCause: "write ledger: 08006"},
	}
	b.state.offsets = func(_ context.Context, name string) (Offsets, error) {
		return Offsets{
			Group: "group-of-" + name,
			Partitions: []Partition{
				{Topic: "events", Partition: 0, Committed: new(int64(5)), Stored: new(int64(7)), End: new(int64(9)), Lag: new(int64(4))},
				{Topic: "events", Partition: 1, End: new(int64(0))},
			},
			Problems: []string{"stored: connection refused"},
		}, nil
	}
	b.get(t, "/admin/consumer", read...).is(t, 200, `{"name":"persist","state":"backoff","since":"2026-11-15T01:02:03Z","restarts":3,`+
		`"lastCause":"write ledger: 08006","group":"group-of-persist","partitions":[`+
		`{"topic":"events","partition":0,"committed":5,"stored":7,"end":9,"lag":4},`+
		`{"topic":"events","partition":1,"committed":null,"stored":null,"end":0,"lag":null}],"problems":["stored: connection refused"]}`)

	b.state.offsets = func(context.Context, string) (Offsets, error) { return Offsets{Group: "g"}, nil }
	b.state.pipelines = []Pipeline{{Name: "persist", State: "starting"}}
	b.get(t, "/admin/consumer", read...).is(t, 200,
		`{"name":"persist","state":"starting","restarts":0,"group":"g","partitions":[],"problems":[]}`)
}

func TestThePipelinesAreListedInTheirOrder(t *testing.T) {
	b := setup(t)
	read := bearerOf(b.mint(t, "admin:read"))
	b.state.pipelines = []Pipeline{{Name: "persist", State: "running", Restarts: 1, LastCause: "x"}, {Name: "dlq", State: "stopped"}}
	b.get(t, "/admin/pipelines", read...).is(t, 200,
		`{"pipelines":[{"name":"persist","state":"running","restarts":1,"lastCause":"x"},{"name":"dlq","state":"stopped","restarts":0}]}`)
	b.state.pipelines = nil
	b.get(t, "/admin/pipelines", read...).is(t, 200, `{"pipelines":[]}`)
}

func TestWhatGoesWrongInAHandlerIsAProblem(t *testing.T) {
	b := setup(t, func(c *Config) { c.Limits.Handle = 50 * time.Millisecond })
	read := bearerOf(b.mint(t, "admin:read"))
	for name, c := range map[string]struct {
		offsets func(context.Context, string) (Offsets, error)
		status  int
	}{
		"a pipeline that is gone by now": {func(context.Context, string) (Offsets, error) { return Offsets{}, ErrUnknownPipeline }, 404},
		"a broker that doesn't answer": {func(ctx context.Context, _ string) (Offsets, error) {
			<-ctx.Done()
			return Offsets{}, ctx.Err()
		}, 503},
		"anything else": {func(context.Context, string) (Offsets, error) { return Offsets{}, errors.New("password=hunter22") }, 500},
	} {
		t.Run(name, func(t *testing.T) {
			b.state.offsets = c.offsets
			got := b.get(t, "/admin/consumer", read...)
			got.problem(t, c.status)
			if strings.Contains(string(got.body), "hunter22") {
				t.Errorf("the cause is shown: %s", got.body)
			}
			if retry := got.Header.Get("Retry-After"); (retry != "") != (c.status == 503) {
				t.Errorf("Retry-After %q", retry)
			}
		})
	}
}

func TestAConfigurationWithoutAConsumerHasNoneToShow(t *testing.T) {
	b := setup(t, func(c *Config) { c.Consumer = "" })
	b.get(t, "/admin/consumer", bearerOf(b.mint(t, "admin:read"))...).problem(t, 404)
}
