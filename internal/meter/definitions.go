package meter

import "github.com/prometheus/client_golang/prometheus"

// Kind is the Prometheus type of a metric.
type Kind string

// The kinds in use.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Definition is one metric as it is registered and as docs/metrics.md shows it.
type Definition struct {
	Name    string
	Kind    Kind
	Labels  []string
	Meaning string // one paragraph for the operator who looks at the number
	Values  string // what the labels can hold, "" without labels

	buckets []float64 // of a histogram
}

// The names. They are those of the systems whose dashboards go on working, with dots as underscores.
const (
	batchSize      = "consume_batch_size"
	batchLatency   = "consume_batch_latency_seconds"
	persisted      = "consume_records_persisted_total"
	duplicate      = "consume_records_duplicate_total"
	retimed        = "consume_records_retimed_total"
	poison         = "consume_records_poison_total"
	groupLag       = "consume_group_lag"
	running        = "consume_running"
	divergence     = "consume_checkpoint_divergence"
	startPositions = "consume_start_positions_total"
	offsetGap      = "consume_offset_gap_records_total"
	offsetSkipped  = "consume_offset_skipped_records_total"
	topicRecreated = "consume_topic_recreated_total"
	restarts       = "consume_restarts_total"
	dlqDepth       = "dlq_depth"
	healthBroker   = "health_broker"
	healthDatabase = "health_database"
)

// Definitions returns every metric of this process but those of the Go runtime and of the process itself, in the order of
// docs/metrics.md.
func Definitions() []Definition {
	return append(batchDefinitions(), append(consumerDefinitions(), dependencyDefinitions()...)...)
}

func batchDefinitions() []Definition {
	return []Definition{
		{
			Name: batchSize, Kind: Histogram,
			Meaning: "Records per batch handed to the writer. Small batches under sustained load mean that the consumer is starved, not saturated.",
			buckets: prometheus.ExponentialBuckets(1, 2, 15), // 1 to 16,384: the largest max_size is 10,000
		},
		{
			Name: batchLatency, Kind: Histogram, Labels: []string{"outcome"},
			Meaning: "Wall clock of one batch's write, retries, isolation and dead letters included.",
			Values:  "`success`, `failure` (the batch goes back and is written again)",
			buckets: prometheus.ExponentialBuckets(0.001, 2, 16), // 1 ms to 32 s, beyond which a write has timed out
		},
		{
			Name: persisted, Kind: Counter, Labels: []string{"type"},
			Meaning: "Records that the database took responsibility for in a committed batch, new or already present.",
			Values:  "the event's type: the first 100 distinct ones, then `other`",
		},
		{
			Name: duplicate, Kind: Counter,
			Meaning: "Records whose event was there already. More than zero is normal after a redelivery. Without labels: the shortfall of a batch can't be attributed to a type.",
		},
		{
			Name: retimed, Kind: Counter,
			Meaning: "Events of a batch that share id and source with another of the same batch and have another time. The time is part of a row's identity, so each is a row of its own: more than zero means a producer that stamps a repeated event anew. Repeats that lie further apart are not seen here.",
		},
		{
			Name: poison, Kind: Counter, Labels: []string{"reason"},
			Meaning: "Records that became a dead letter.",
			Values:  "the closed list of reasons, and `other`, which means a defect",
		},
	}
}

func consumerDefinitions() []Definition {
	return []Definition{
		{
			Name: groupLag, Kind: Gauge, Labels: []string{"group", "topic", "partition"},
			Meaning: "Log end minus the group's committed offset, never below 0, as the broker tells it: it goes on while the consumer is down. A partition that was never committed, or whose offsets could not be read, has no series.",
			Values:  "a group, topic and partition of the configuration",
		},
		{
			Name: running, Kind: Gauge, Labels: []string{"pipeline"},
			Meaning: "1 while the pipeline consumes, 0 while it is stopped, paused, waiting for a restart or failed, NaN when its state could not be read. Lag that rises at 1 is a consumer that can't keep up, at 0 somebody's maintenance.",
			Values:  "a pipeline of the configuration",
		},
		{
			Name: divergence, Kind: Gauge, Labels: []string{"pipeline"},
			Meaning: "Distance between the checkpoint in the database and the offset committed to Kafka, in records, summed over the partitions that have both. Some is normal between two commits. NaN when either could not be read.",
			Values:  "a pipeline of the configuration",
		},
		{
			Name: startPositions, Kind: Counter, Labels: []string{"group", "topic", "from"},
			Meaning: "Partitions that this process began to read, by where the position came from.",
			Values:  "`from` is `commit` (Kafka's), `checkpoint` (Kafka had none), `earliest` (nobody had one)",
		},
		{
			Name: offsetGap, Kind: Counter, Labels: []string{"group", "topic"},
			Meaning: "Offsets that were gone, by retention or deletion, before this group read them. Each is a record that can't become a row any more.",
			Values:  "a group and topic of the configuration",
		},
		{
			Name: offsetSkipped, Kind: Counter, Labels: []string{"group", "topic"},
			Meaning: "Records between a partition's checkpoint and a committed offset beyond it, which is obeyed: somebody moved the group's offsets forward, or the database was restored to an earlier state. They are not read; `appliance audit` names them.",
			Values:  "a group and topic of the configuration",
		},
		{
			Name: topicRecreated, Kind: Counter, Labels: []string{"group", "topic"},
			Meaning: "Times a topic came back with another id: its offsets start over, and so does its checkpoint.",
			Values:  "a group and topic of the configuration",
		},
		{
			Name: restarts, Kind: Counter, Labels: []string{"pipeline", "cause"},
			Meaning: "Restarts of a pipeline by the supervisor, after a failure.",
			Values:  "`cause` is the class of the failure, the first 32 distinct ones, then `other`",
		},
	}
}

func dependencyDefinitions() []Definition {
	return []Definition{
		{
			Name: dlqDepth, Kind: Gauge, Labels: []string{"topic"},
			Meaning: "Offsets between start and end of the dead-letter topic: an upper bound of the letters in it. NaN when it could not be read.",
			Values:  "a dead-letter topic of the configuration",
		},
		{Name: healthBroker, Kind: Gauge, Meaning: "1 when the last probe reached every Kafka cluster, else 0. It starts at 0."},
		{Name: healthDatabase, Kind: Gauge, Meaning: "1 when the last probe reached every PostgreSQL, else 0. It starts at 0."},
	}
}
