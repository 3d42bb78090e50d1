// Package meter holds the metrics of this process: one registry of its own, one list of definitions from which both the
// registry and docs/metrics.md are made, and a method per fact, so that no caller writes a metric's name or a label.
package meter

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"appliance/internal/event"
)

// Identity becomes the constant labels of every series.
type Identity struct {
	Service  string // "appliance"
	Version  string
	Instance string // the host's name, mostly
}

// Meter counts. Every method is safe for concurrent use, takes any string, and never waits.
type Meter struct {
	registry *prometheus.Registry

	batchSize                                          prometheus.Histogram
	batchLatency                                       *prometheus.HistogramVec
	persisted, poison                                  *prometheus.CounterVec
	duplicate, retimed                                 prometheus.Counter
	lag                                                *lags
	running, divergence, depth                         *prometheus.GaugeVec
	startPositions, gaps, skipped, recreated, restarts *prometheus.CounterVec
	broker, database                                   prometheus.Gauge
	types, causes, reasons, outcomes, positionKinds    *firsts
}

// New returns a meter whose counters are at zero. Of poison, every reason of the closed list has its series from the start,
// so that the first dead letter is an increase and not a new series; any other reason counts as "other".
func New(id Identity) *Meter {
	reasons := event.Reasons()
	m := &Meter{
		registry:      prometheus.NewRegistry(),
		types:         newFirsts(maxTypes),
		causes:        newFirsts(maxCauses),
		reasons:       closed(reasons...),
		outcomes:      closed("success", "failure"),
		positionKinds: closed("commit", "checkpoint", "earliest"),
	}
	// go_info has a label "version" of its own, so what tells of the runtime goes without ours.
	process := prometheus.WrapRegistererWith(prometheus.Labels{
		"service": label(id.Service), "instance": label(id.Instance),
	}, m.registry)
	process.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.register(prometheus.WrapRegistererWith(prometheus.Labels{"version": label(id.Version)}, process))
	for _, reason := range append(reasons, other) {
		m.poison.WithLabelValues(label(reason))
	}
	return m
}

// closed is a list that admits its own values only.
func closed(values ...string) *firsts {
	f := newFirsts(len(values))
	for _, v := range values {
		f.admit(v)
	}
	f.max = len(f.seen) // a value given twice leaves no place for a stranger
	return f
}

// Handler serves the registry in Prometheus' text format, or in another one that the request asks for.
func (m *Meter) Handler() http.Handler {
	// A collector that fails costs its own series and not the scrape: half of the truth beats none during an outage.
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// Gatherer gives the registry to an exporter.
func (m *Meter) Gatherer() prometheus.Gatherer { return m.registry }

// BatchSize counts a batch of n records.
func (m *Meter) BatchSize(n int) { m.batchSize.Observe(float64(n)) }

// BatchLatency counts the write of one batch: "success" or "failure", and how long it took.
func (m *Meter) BatchLatency(outcome string, took time.Duration) {
	m.batchLatency.WithLabelValues(m.outcomes.admit(outcome)).Observe(took.Seconds())
}

// Persisted counts n records of an event type that are durable in the database, new or already there.
func (m *Meter) Persisted(eventType string, n int) {
	m.persisted.WithLabelValues(m.types.admit(eventType)).Add(float64(max(n, 0)))
}

// Duplicate counts n records whose event was there already.
func (m *Meter) Duplicate(n int) { m.duplicate.Add(float64(max(n, 0))) }

// Retimed counts n events that share id and source with another of their batch, under another time.
func (m *Meter) Retimed(n int) { m.retimed.Add(float64(max(n, 0))) }

// Poison counts n dead letters of one reason.
func (m *Meter) Poison(reason string, n int) {
	m.poison.WithLabelValues(m.reasons.admit(reason)).Add(float64(max(n, 0)))
}

// SetLag replaces the lag of a group. A partition that rows lacks disappears; nil rows, for a reading that did not arrive,
// remove them all.
func (m *Meter) SetLag(group string, rows []PartitionLag) { m.lag.set(group, rows) }

// SetRunning sets whether a pipeline consumes: 1, 0, or NaN for unknown.
func (m *Meter) SetRunning(pipeline string, value float64) {
	m.running.WithLabelValues(label(pipeline)).Set(value)
}

// SetDivergence sets how far checkpoint and committed offsets of a pipeline are apart, in records; NaN for unknown.
func (m *Meter) SetDivergence(pipeline string, records float64) {
	m.divergence.WithLabelValues(label(pipeline)).Set(records)
}

// ForgetPipeline removes the gauges of a pipeline that the configuration has no more.
func (m *Meter) ForgetPipeline(pipeline string) {
	m.running.DeleteLabelValues(label(pipeline))
	m.divergence.DeleteLabelValues(label(pipeline))
}

// StartPosition counts a partition that is read from now on; from is the word of offset.Origin.
func (m *Meter) StartPosition(group, topic, from string) {
	m.startPositions.WithLabelValues(label(group), label(topic), m.positionKinds.admit(from)).Inc()
}

// OffsetGap counts records that were gone before they were read.
func (m *Meter) OffsetGap(group, topic string, records int64) {
	m.gaps.WithLabelValues(label(group), label(topic)).Add(float64(max(records, 0)))
}

// OffsetSkipped counts records that an offset committed beyond the checkpoint left unread.
func (m *Meter) OffsetSkipped(group, topic string, records int64) {
	m.skipped.WithLabelValues(label(group), label(topic)).Add(float64(max(records, 0)))
}

// TopicRecreated counts a topic that came back with another id.
func (m *Meter) TopicRecreated(group, topic string) {
	m.recreated.WithLabelValues(label(group), label(topic)).Inc()
}

// Restart counts a restart of a pipeline; cause is the class of its failure, never a message.
func (m *Meter) Restart(pipeline, cause string) {
	m.restarts.WithLabelValues(label(pipeline), m.causes.admit(cause)).Inc()
}

// SetDLQDepth sets the upper bound of letters on a dead-letter topic; NaN for unknown.
func (m *Meter) SetDLQDepth(topic string, records float64) {
	m.depth.WithLabelValues(label(topic)).Set(records)
}

// SetBroker sets whether every Kafka cluster answered its last probe.
func (m *Meter) SetBroker(up bool) { m.broker.Set(number(up)) }

// SetDatabase sets whether every PostgreSQL answered its last probe.
func (m *Meter) SetDatabase(up bool) { m.database.Set(number(up)) }

func number(up bool) float64 {
	if up {
		return 1
	}
	return 0
}

// register makes each metric from its definition. A name without one is a mistake of this file and panics at start.
func (m *Meter) register(to prometheus.Registerer) {
	from := maker{to: to, definitions: map[string]Definition{}}
	for _, d := range Definitions() {
		from.definitions[d.Name] = d
	}
	m.batchSize = from.histogram(batchSize).WithLabelValues().(prometheus.Histogram)
	m.batchLatency = from.histogram(batchLatency)
	m.persisted = from.counter(persisted)
	m.duplicate = from.counter(duplicate).WithLabelValues()
	m.retimed = from.counter(retimed).WithLabelValues()
	m.poison = from.counter(poison)
	m.lag = newLags(from.take(groupLag, Gauge))
	to.MustRegister(m.lag)
	m.running = from.gauge(running)
	m.divergence = from.gauge(divergence)
	m.startPositions = from.counter(startPositions)
	m.gaps = from.counter(offsetGap)
	m.skipped = from.counter(offsetSkipped)
	m.recreated = from.counter(topicRecreated)
	m.restarts = from.counter(restarts)
	m.depth = from.gauge(dlqDepth)
	m.broker = from.gauge(healthBroker).WithLabelValues()
	m.database = from.gauge(healthDatabase).WithLabelValues()
	from.complete()
}
