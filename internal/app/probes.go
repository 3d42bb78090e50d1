package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"appliance/internal/admin"
	"appliance/internal/broker"
	"appliance/internal/health"
	"appliance/internal/intake"
	"appliance/internal/meter"
	"appliance/internal/offset"
	"appliance/internal/pg"
	"appliance/internal/run"
	"appliance/internal/supervisor"
)

// groupOf is what is asked about a pipeline's consumer group.
type groupOf struct {
	pipeline, group string
	topics          []string
	admin           *broker.Admin
	db              *pg.DB // nil where progress is in Kafka only
	ledger          bool   // of the pipeline that consume_* metrics are about
}

// probeInterval is the longest that readiness may trail the truth: a ping costs nothing, unlike the offsets of a group.
const probeInterval = 5 * time.Second

func (a *App) newProber() *health.Prober {
	timeout, every := a.cfg.Lag.RequestTimeout, min(a.cfg.Lag.RefreshInterval, probeInterval)
	var deps []health.Dependency
	for name, adm := range a.res.admins {
		deps = append(deps, health.Dependency{Name: dependency("kafka", name, len(a.res.admins)), Timeout: timeout, Interval: every, Check: adm.Ping})
	}
	for name, db := range a.res.databases {
		deps = append(deps, health.Dependency{Name: dependency("postgresql", name, len(a.res.databases)), Timeout: timeout, Interval: every, Check: db.Ping})
	}
	slices.SortFunc(deps, func(x, y health.Dependency) int { return cmp.Compare(x.Name, y.Name) })
	return health.New(health.Config{
		Interval: a.cfg.Lag.RefreshInterval, Now: a.clock.Now, Log: a.log, Changed: a.probed, Redact: a.cfg.Secrets.Hide,
	}, deps, a.readings())
}

// dependency names the only one of its kind by its kind alone, as dashboards know it.
func dependency(kind, name string, of int) string {
	if of == 1 {
		return kind
	}
	return kind + "." + name
}

// probed sets a kind's gauge: 1 when every one of the kind is up.
func (a *App) probed(name string, up bool) {
	a.upMu.Lock()
	defer a.upMu.Unlock()
	a.up[name] = up
	kind, _, _ := strings.Cut(name, ".")
	all := true
	for other, up := range a.up {
		if of, _, _ := strings.Cut(other, "."); of == kind {
			all = all && up
		}
	}
	if kind == "kafka" {
		a.meter.SetBroker(all)
		return
	}
	a.meter.SetDatabase(all)
}

// readings: lag and divergence of every group, and the depth of every dead-letter topic.
func (a *App) readings() []health.Reading {
	var all []health.Reading
	for _, g := range a.groups {
		all = append(all, health.Sample("lag of "+g.group, 3*a.cfg.Lag.RequestTimeout, g.lag,
			func(rows []meter.PartitionLag) { a.meter.SetLag(g.group, rows) }, nil))
		if g.db != nil {
			all = append(all, health.Gauge("checkpoint divergence of "+g.pipeline, 3*a.cfg.Lag.RequestTimeout, g.divergence,
				func(n float64) { a.meter.SetDivergence(g.pipeline, n) }))
		}
	}
	for _, d := range a.cfg.DeadLetters {
		adm := a.res.admins[d.Cluster]
		all = append(all, health.Gauge("depth of "+d.Topic, a.cfg.Lag.RequestTimeout,
			func(ctx context.Context) (float64, error) { return depth(ctx, adm, d.Topic) },
			func(n float64) { a.meter.SetDLQDepth(d.Topic, n) }))
	}
	return all
}

// lag asks the broker and not the consumer, so that the measurement survives what it measures.
func (g groupOf) lag(ctx context.Context) ([]meter.PartitionLag, error) {
	logs, err := g.admin.Logs(ctx, g.topics...)
	if err != nil {
		return nil, err
	}
	committed, err := g.admin.Committed(ctx, g.group)
	if err != nil {
		return nil, err
	}
	var rows []meter.PartitionLag
	for _, tp := range broker.Sorted(logs) {
		at, ok := committed[tp]
		if !ok {
			continue
		}
		if lag, known := offset.Lag(at, logs[tp]); known {
			rows = append(rows, meter.PartitionLag{Topic: tp.Topic, Partition: tp.Partition, Lag: lag})
		}
	}
	return rows, nil
}

// divergence is how far checkpoints and commits are apart, over all partitions that have both.
func (g groupOf) divergence(ctx context.Context) (float64, error) {
	stored, err := g.stored(ctx)
	if err != nil {
		return math.NaN(), err
	}
	committed, err := g.admin.Committed(ctx, g.group)
	if err != nil {
		return math.NaN(), err
	}
	apart := int64(0)
	for tp, next := range stored {
		if at, ok := committed[tp]; ok {
			apart += max(next-at, at-next)
		}
	}
	return float64(apart), nil
}

// stored returns the checkpoints of the topics as they are now: those of an earlier topic of the same name are left out.
func (g groupOf) stored(ctx context.Context) (map[intake.TP]int64, error) {
	topics, err := g.admin.Topics(ctx, g.topics...)
	if err != nil {
		return nil, err
	}
	checkpoints, err := g.db.Checkpoints(ctx, g.group)
	if err != nil {
		return nil, err
	}
	stored := map[intake.TP]int64{}
	for _, c := range checkpoints {
		if found, ok := topics[c.Topic]; ok && found.ID == c.TopicID && c.Found {
			stored[intake.TP{Topic: c.Topic, Partition: c.Partition}] = c.Next
		}
	}
	return stored, nil
}

func depth(ctx context.Context, adm *broker.Admin, topic string) (float64, error) {
	logs, err := adm.Logs(ctx, topic)
	if err != nil {
		return math.NaN(), err
	}
	records := int64(0)
	for _, log := range logs {
		records += log.End - log.Start
	}
	return float64(records), nil
}

// offsets answers GET /admin/consumer: what can't be read is named and the rest is shown.
func (g groupOf) offsets(ctx context.Context, redact func(string) string) admin.Offsets {
	out := admin.Offsets{Group: g.group}
	problem := func(what string, err error) {
		if err != nil {
			out.Problems = append(out.Problems, redact(fmt.Sprintf("%s: %v", what, err)))
		}
	}
	logs, err := g.admin.Logs(ctx, g.topics...)
	problem("end offsets", err)
	committed, err := g.admin.Committed(ctx, g.group)
	problem("committed offsets", err)
	var stored map[intake.TP]int64
	if g.db != nil {
		stored, err = g.stored(ctx)
		problem("stored offsets", err)
	}
	for _, tp := range broker.Sorted(union(logs, committed, stored)) {
		out.Partitions = append(out.Partitions, row(tp, logs, committed, stored))
	}
	return out
}

func union(logs map[intake.TP]offset.Log, more ...map[intake.TP]int64) map[intake.TP]bool {
	all := map[intake.TP]bool{}
	for tp := range logs {
		all[tp] = true
	}
	for _, m := range more {
		for tp := range m {
			all[tp] = true
		}
	}
	return all
}

func row(tp intake.TP, logs map[intake.TP]offset.Log, committed, stored map[intake.TP]int64) admin.Partition {
	p := admin.Partition{Topic: tp.Topic, Partition: tp.Partition}
	if at, ok := committed[tp]; ok {
		p.Committed = &at
		if log, ok := logs[tp]; ok {
			if lag, known := offset.Lag(at, log); known {
				p.Lag = &lag
			}
		}
	}
	if next, ok := stored[tp]; ok {
		p.Stored = &next
	}
	if log, ok := logs[tp]; ok {
		p.End = &log.End
	}
	return p
}

// stallAfter is how long a partition may stand still behind its end before its run is ended and its subscription opened
// anew: longer than any batch with all its attempts, shorter than a person's patience.
const stallAfter = 3 * time.Minute

// watch is what the watchdog has seen of one pipeline, in one run: a run begins with the whole patience.
type watch struct {
	of    *run.Run
	stall offset.Stall[intake.TP]
}

// look returns the partitions that have stood still for stallAfter during this run.
func (w *watch) look(current *run.Run, positions, ends map[intake.TP]int64, now time.Time) []intake.TP {
	if w.of != current {
		w.of, w.stall = current, offset.Stall[intake.TP]{After: stallAfter}
	}
	return w.stall.Look(positions, ends, now)
}

// watchStalls is the watchdog against what no error tells: a fetch that never answers, a claim that never comes back.
func (a *App) watchStalls(ctx context.Context) {
	seen := map[string]*watch{}
	for name := range a.groups {
		seen[name] = &watch{}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.clock.After(a.cfg.Lag.RefreshInterval):
		}
		for _, r := range a.runners {
			if w := seen[r.name]; w != nil {
				a.lookForStall(ctx, r, w)
			}
		}
	}
}

func (a *App) lookForStall(ctx context.Context, r *runner, seen *watch) {
	g := a.groups[r.name]
	sub, current := a.subs.ofPipeline(r.name), r.running()
	if sub == nil || current == nil || r.State() != supervisor.Running { // a run that waits to be restarted has a cause already
		return
	}
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Lag.RequestTimeout)
	defer cancel()
	ends, err := g.admin.StableEnds(ctx, g.topics...)
	if err != nil {
		return // the broker is away, which readiness says
	}
	positions := map[intake.TP]int64{}
	for _, p := range sub.Progress() {
		positions[p.TP] = p.Position
	}
	if stalled := seen.look(current, positions, ends, a.clock.Now()); len(stalled) > 0 {
		a.log.Error("no progress though records wait: starting anew", slog.String("pipeline", r.name), slog.Any("partitions", stalled))
		sub.Break(errStalled)
		current.Fail(errStalled)
	}
}
