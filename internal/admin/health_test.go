package admin

import (
	"testing"

	"appliance/internal/health"
)

func dependencies(kafka, postgresql string) health.Report {
	status := func(name, detail string) health.Status {
		return health.Status{Name: name, Up: detail == "reachable", Detail: detail}
	}
	return health.Report{
		Up:           kafka == "reachable" && postgresql == "reachable",
		Dependencies: []health.Status{status("kafka", kafka), status("postgresql", postgresql)},
	}
}

func TestReadinessSaysWhichDependencyIsDownAndWhy(t *testing.T) {
	b := setup(t)
	for name, c := range map[string]struct {
		report health.Report
		status int
		body   string
	}{
		"both are up": {
			dependencies("reachable", "reachable"), 200,
			`{"status":"UP","dependencies":{"kafka":{"status":"UP","detail":"reachable"},"postgresql":{"status":"UP","detail":"reachable"}}}`,
		},
		"nothing was probed": {
			dependencies("not probed yet", "not probed yet"), 503,
			`{"status":"DOWN","dependencies":{"kafka":{"status":"DOWN","detail":"not probed yet"},"postgresql":{"status":"DOWN","detail":"not probed yet"}}}`,
		},
		"the database is away": {
			dependencies("reachable", `dial: "refused"`), 503,
			`{"status":"DOWN","dependencies":{"kafka":{"status":"UP","detail":"reachable"},"postgresql":{"status":"DOWN","detail":"dial: \"refused\""}}}`,
		},
		"there is nothing to depend on": {health.Report{Up: true}, 200, `{"status":"UP","dependencies":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			b.report = c.report
			got := b.get(t, "/health/ready")
			got.is(t, c.status, c.body)
			if ct := got.Header.Get("Content-Type"); ct != "application/json" {
				t.Errorf("content type %q", ct)
			}
			b.get(t, "/health/live").is(t, 200, `{"status":"UP"}`)
		})
	}
}

func TestReadinessOfOnePipeline(t *testing.T) {
	b := setup(t)
	b.report = dependencies("reachable", "reachable")
	b.state.pipelines = []Pipeline{
		{Name: "persist", State: "running", LastCause: "write ledger: 08006"},
		{Name: "dlq", State: "failed", LastCause: "budget used up"},
		{Name: "ingest", State: "paused"},
	}
	const rest = `"dependencies":{"kafka":{"status":"UP","detail":"reachable"},"postgresql":{"status":"UP","detail":"reachable"}}`
	b.get(t, "/health/ready?pipeline=persist").is(t, 200, `{"status":"UP",`+rest+`,"pipeline":{"status":"UP","detail":"running"}}`)
	b.get(t, "/health/ready?pipeline=dlq").is(t, 503, `{"status":"DOWN",`+rest+`,"pipeline":{"status":"DOWN","detail":"failed: budget used up"}}`)
	b.get(t, "/health/ready?pipeline=ingest").is(t, 503, `{"status":"DOWN",`+rest+`,"pipeline":{"status":"DOWN","detail":"paused"}}`)
	b.get(t, "/health/ready?pipeline=nobody").problem(t, 404)
	b.get(t, "/health/ready").is(t, 200, `{"status":"UP",`+rest+`}`) // a pipeline that somebody paused is not the process's

	b.report = dependencies("away", "reachable")
	if got := b.get(t, "/health/ready?pipeline=persist"); got.StatusCode != 503 {
		t.Errorf("a pipeline is ready without its broker: %s", got.body)
	}
}

func TestADrainIsUnreadyAndStillWatched(t *testing.T) {
	b := setup(t)
	b.report = dependencies("reachable", "reachable")
	b.server.Unready()
	b.get(t, "/health/ready").is(t, 503, `{"status":"DOWN","detail":"draining","dependencies":{"kafka":{"status":"UP","detail":"reachable"},"postgresql":{"status":"UP","detail":"reachable"}}}`)
	b.get(t, "/health/live").is(t, 200, `{"status":"UP"}`)
	b.get(t, "/metrics").is(t, 200, "consume_running 1")
}
