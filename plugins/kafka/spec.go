// Package kafka is the engine's input `kafka`: the gate through which a group's records enter a pipeline, one batch a
// lane, and never two batches of one partition at once.
package kafka

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// Name is the component's name in HCL, in documentation and in metrics.
const Name = "kafka"

// The arguments, as they are written.
const (
	fieldCluster           = "cluster"
	fieldTopics            = "topics"
	fieldGroup             = "group"
	fieldLanes             = "lanes"
	fieldBatch             = "batch"
	fieldBatchSize         = "size"
	fieldBatchMaxSize      = "max_size"
	fieldBatchWindow       = "window"
	fieldCommit            = "commit"
	fieldCommitMaxBatch    = "max_batch"
	fieldCommitMaxInterval = "max_interval"
	fieldCommitParallelism = "parallelism"
	fieldStart             = "start"
	fieldInstanceID        = "instance_id"
	fieldProperties        = "properties"
)

// Where a group begins that has neither a committed offset nor a checkpoint.
const (
	StartEarliest = "earliest"
	StartLatest   = "latest"
)

// Bounds of what may be configured.
const (
	maxLanes    = 64      // more lanes than any topic's partitions on one replica, and one database connection each
	maxBatch    = 50_000  // a batch is one transaction: beyond this its retry costs seconds
	maxInFlight = 200_000 // lanes × max_size records are held in memory at once
)

// Config is what the arguments say, checked.
type Config struct {
	Cluster string   // name of the kafka resource
	Topics  []string // at least one, each once
	Group   string
	Lanes   int // batches out at once, 1 to 64
	Batch   Batch
	Commit  Commit
	Start   string // StartEarliest or StartLatest

	InstanceID string // static membership, "" for a dynamic member
	Properties Properties
}

// Batch says when a batch is cut: at Size records, or Window after its first; under backlog it grows to MaxSize.
type Batch struct {
	Size, MaxSize int
	Window        time.Duration
}

// Commit says when offsets of durable batches are committed to Kafka: after MaxBatch records or MaxInterval, whichever
// is first, with at most Parallelism commits under way. They are behind the checkpoint, so delay costs only a replay.
type Commit struct {
	MaxBatch    int
	MaxInterval time.Duration
	Parallelism int
}

// Spec documents the component.
func Spec() *service.ConfigSpec {
	return service.NewConfigSpec().
		Summary("Consumes topics as one consumer group, in batches that keep the order of each partition.").
		Description("A partition is idle or in exactly one outstanding batch: it is handed out again only after its batch "+
			"is durable. A batch is cut at `batch.size` records or `batch.window` after its first; under backlog it grows "+
			"to `batch.max_size`. Offsets are committed after the batch was acknowledged, never before.").
		Fields(
			service.NewStringField(fieldCluster).Description("The `kafka` resource to consume from, as `kafka.main`."),
			service.NewStringListField(fieldTopics).Description("The topics, each once.").Example([]any{"events.cloudevents.v1"}),
			service.NewStringField(fieldGroup).Description("The consumer group. Another name reads everything again."),
			service.NewIntField(fieldLanes).Description("Batches in flight at once, 1 to 64.").Default(4),
			batchField(), commitField(),
			service.NewStringEnumField(fieldStart, StartEarliest, StartLatest).Default(StartEarliest).
				Description("Where a group without offsets begins. `latest` skips what was published before, and is refused ahead of a ledger."),
			service.NewStringField(fieldInstanceID).Default("").Advanced().
				Description("A name for static membership, unique per replica: a restart then costs no rebalance."),
			service.NewStringMapField(fieldProperties).Default(map[string]any{}).Advanced().
				Description("Properties of a Kafka consumer by their usual names. Those that decide correctness are refused."),
		).
		Footnotes("## Refuses\n\n" +
			"- no topic, a topic twice, an empty group;\n" +
			"- more than 64 lanes, batches beyond 50,000 records, `max_size` below `size`, more than 200,000 records in all lanes together: they are in memory;\n" +
			"- `commit.parallelism` other than 1;\n" +
			"- `start = \"latest\"` ahead of a ledger;\n" +
			"- properties that decide whether records are lost, or that are arguments here: " + quoteAll(slices.Sorted(maps.Keys(RefusedProperties()))) + ";\n" +
			"- properties other than " + quoteAll(PropertyNames()) + ".\n")
}

// quoteAll lists names for documentation.
func quoteAll(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }

func batchField() *service.ConfigField {
	return service.NewObjectField(fieldBatch,
		service.NewIntField(fieldBatchSize).Default(500).Description("Records of a batch without backlog."),
		service.NewIntField(fieldBatchMaxSize).Default(5000).Description("Records of a batch under backlog, at least `size`."),
		service.NewDurationField(fieldBatchWindow).Default("250ms").
			Description("How long a record waits for others: the latency floor under sparse traffic."),
	).Description("When a batch is cut.")
}

func commitField() *service.ConfigField {
	return service.NewObjectField(fieldCommit,
		service.NewIntField(fieldCommitMaxBatch).Default(1000).Description("Commit after this many durable records."),
		service.NewDurationField(fieldCommitMaxInterval).Default("5s").Description("Commit at the latest after this time."),
		service.NewIntField(fieldCommitParallelism).Default(1).Description("Commits under way at once; 1 keeps their order."),
	).Description("When offsets of durable batches are committed. A delay repeats records after a crash and loses none.")
}

// ArgumentError is a refusal that names the argument at fault, such as "batch.size".
type ArgumentError struct {
	Path   string // dotted, as the arguments nest
	Reason string
	Known  []string // what the last element of the path could have been, where it is a name
}

// Choices returns the names that would have been taken in place of the path's last element.
func (e *ArgumentError) Choices() []string { return e.Known }

// Error gives the argument and the reason.
func (e *ArgumentError) Error() string { return e.Path + ": " + e.Reason }

// Argument returns the dotted path of the argument at fault, so that a linter can point at it.
func (e *ArgumentError) Argument() string { return e.Path }

func refuse(path, format string, args ...any) error {
	return &ArgumentError{Path: path, Reason: fmt.Sprintf(format, args...)}
}

// Parse reads and checks the arguments. Every refusal is an ArgumentError, all of them joined.
func Parse(conf *service.ParsedConfig) (Config, error) {
	c, malformed := read(conf)
	props, refused := readProperties(conf)
	c.Properties = props
	if malformed == nil { // what could not be read is zero, and would be refused twice
		malformed = c.check()
	}
	if err := errors.Join(malformed, refused); err != nil {
		return Config{}, err
	}
	return c, nil
}

// read takes the values as they are; the spec has ensured their shapes.
func read(conf *service.ParsedConfig) (c Config, err error) {
	var errs [10]error
	c.Cluster, errs[0] = conf.FieldString(fieldCluster)
	c.Topics, errs[1] = conf.FieldStringList(fieldTopics)
	c.Group, errs[2] = conf.FieldString(fieldGroup)
	c.Lanes, errs[3] = conf.FieldInt(fieldLanes)
	c.Batch.Size, errs[4] = conf.FieldInt(fieldBatch, fieldBatchSize)
	c.Batch.MaxSize, errs[5] = conf.FieldInt(fieldBatch, fieldBatchMaxSize)
	c.Batch.Window, errs[6] = duration(conf, fieldBatch, fieldBatchWindow)
	c.Commit, errs[7] = readCommit(conf.Namespace(fieldCommit))
	c.Start, errs[8] = conf.FieldString(fieldStart)
	c.InstanceID, errs[9] = conf.FieldString(fieldInstanceID)
	return c, errors.Join(errs[:]...)
}

func readCommit(conf *service.ParsedConfig) (c Commit, err error) {
	var errs [3]error
	c.MaxBatch, errs[0] = conf.FieldInt(fieldCommitMaxBatch)
	c.MaxInterval, errs[1] = conf.FieldDuration(fieldCommitMaxInterval)
	if errs[1] != nil {
		errs[1] = refuse(fieldCommit+"."+fieldCommitMaxInterval, "is no duration such as 5s")
	}
	c.Parallelism, errs[2] = conf.FieldInt(fieldCommitParallelism)
	return c, errors.Join(errs[:]...)
}

func duration(conf *service.ParsedConfig, block, field string) (time.Duration, error) {
	d, err := conf.FieldDuration(block, field)
	if err != nil {
		return 0, refuse(block+"."+field, "is no duration such as 250ms")
	}
	return d, nil
}

// check refuses what cannot work or would hold more in memory than a process has.
func (c Config) check() error {
	var errs []error
	want := func(ok bool, path, format string, args ...any) {
		if !ok {
			errs = append(errs, refuse(path, format, args...))
		}
	}
	want(c.Cluster != "", fieldCluster, "names no kafka resource")
	want(c.Group != "", fieldGroup, "must not be empty: offsets are stored under it")
	want(len(c.Topics) > 0, fieldTopics, "must name at least one topic")
	want(distinct(c.Topics), fieldTopics, "must name each topic once, and none may be empty")
	want(c.Lanes >= 1 && c.Lanes <= maxLanes, fieldLanes, "must be 1 to %d, not %d", maxLanes, c.Lanes)
	want(c.Batch.Size >= 1 && c.Batch.Size <= maxBatch, "batch.size", "must be 1 to %d, not %d", maxBatch, c.Batch.Size)
	want(c.Batch.MaxSize >= c.Batch.Size && c.Batch.MaxSize <= maxBatch, "batch.max_size",
		"must be from batch.size (%d) to %d, not %d", c.Batch.Size, maxBatch, c.Batch.MaxSize)
	want(c.Lanes*c.Batch.MaxSize <= maxInFlight, "batch.max_size",
		"%d lanes of %d records hold %d in memory at once, more than %d", c.Lanes, c.Batch.MaxSize, c.Lanes*c.Batch.MaxSize, maxInFlight)
	want(c.Batch.Window >= time.Millisecond && c.Batch.Window <= time.Minute, "batch.window", "must be 1ms to 1m, not %s", c.Batch.Window)
	want(c.Commit.MaxBatch >= 1, "commit.max_batch", "must be at least 1")
	want(c.Commit.MaxInterval >= 100*time.Millisecond && c.Commit.MaxInterval <= 5*time.Minute, "commit.max_interval",
		"must be 100ms to 5m, not %s", c.Commit.MaxInterval)
	want(c.Commit.Parallelism == 1, "commit.parallelism", "must be 1: a later commit that overtakes an earlier one rewinds the group")
	want(c.Start == StartEarliest || c.Start == StartLatest, fieldStart, "must be %q or %q", StartEarliest, StartLatest)
	return errors.Join(errs...)
}

func distinct(names []string) bool {
	seen := make(map[string]bool, len(names))
	for _, n := range names {
		if n == "" || seen[n] {
			return false
		}
		seen[n] = true
	}
	return true
}
