package ledger

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"appliance/internal/fault"
)

// Name is the component's name in HCL, in documentation and in metrics.
const Name = "postgres_ledger"

// The arguments, as they are written.
const (
	fieldDatabase    = "database"
	fieldDeadLetters = "dead_letters"
	fieldAttempts    = "attempts"
	fieldRetryDelay  = "retry_delay"
	fieldLanes       = "lanes"
	fieldKeepMonths  = "keep_months"
	fieldAheadMonths = "ahead_months"
	fieldVerdicts    = "verdicts"
)

// Bounds of what may be configured.
const (
	maxLanes    = 64               // the input's own bound: it is the gate, and never hands out more
	maxAttempts = 100              // beyond this the restart budget is the better place to wait
	maxDelay    = 30 * time.Second // a batch that waits longer holds its partitions for longer than a rebalance takes
	maxMonths   = 240
)

// Config is what the arguments say, checked.
type Config struct {
	Database    string // name of the postgres resource
	DeadLetters string // name of the dead_letters resource, "" for none
	Attempts    int    // at one write before the run fails, at least 1
	RetryDelay  time.Duration
	Lanes       int // batches written at once
	KeepMonths  int // months before the present one whose partitions are maintained
	AheadMonths int // and after it
	Faults      fault.Table
}

// Spec documents the component.
func Spec() *service.ConfigSpec {
	return service.NewConfigSpec().
		Summary("Writes events as rows, and how far the group has come, in one transaction.").
		Description("Every record of a batch ends as a row, as a counted duplicate, or as a dead letter that the broker "+
			"acknowledged before the transaction began. What the database refuses is looked up in a table of SQLSTATEs "+
			"(`appliance explain 23514`): a record at fault is found by halving the batch in transactions that are taken back, "+
			"and becomes a dead letter; an error of the moment is tried again, `attempts` times, and then ends the run, which "+
			"the supervisor starts again; a defect of the schema ends the run at once. Only records are ever dead-lettered.\n\n"+
			"A message that a processor changed is decoded again. A record whose message a processor dropped or marked as "+
			"failed becomes a dead letter. Processors that divide a batch or gather several have no place ahead of a ledger.").
		Fields(
			service.NewStringField(fieldDatabase).Description("The `postgres` resource, as `postgres.events`."),
			service.NewStringField(fieldDeadLetters).Default("").
				Description("The `dead_letters` resource, as `dead_letters.main`. Without one, a record that cannot be stored ends the run."),
			service.NewIntField(fieldAttempts).Default(3).Description("Attempts at one write, 1 to 100, while the error is of the moment."),
			service.NewDurationField(fieldRetryDelay).Default("200ms").
				Description("Wait between two attempts. Short on purpose: the real backoff is the pipeline's restart."),
			service.NewIntField(fieldLanes).Default(maxLanes).Advanced().
				Description("Batches written at once, 1 to 64. The input decides how many are out; a smaller number here makes them wait."),
			service.NewIntField(fieldKeepMonths).Default(13).Advanced().
				Description("Months before the present one that have a partition. An event of an earlier one becomes a dead letter."),
			service.NewIntField(fieldAheadMonths).Default(3).Advanced().Description("Months after the present one that have a partition."),
			service.NewStringMapField(fieldVerdicts).Default(map[string]any{}).Advanced().
				Description("Other verdicts for a SQLSTATE or a class of them: `record`, `transient`, `duplicate` or `defect`.").
				Example(map[string]any{"P0001": "record"}),
		).
		Example("Rows and dead letters", "The shipped pipeline, in short.", `
input:
  kafka:
    cluster: main
    topics: [events.cloudevents.v1]
    group: cobalt-cloudevents-v1
pipeline:
  processors:
    - cloudevents_decode: {}
output:
  postgres_ledger:
    database: events
    dead_letters: main
    attempts: 3
    retry_delay: 200ms
`)
}

// ArgumentError is a refusal that names the argument at fault.
type ArgumentError struct {
	Path   string
	Reason string
}

// Error gives the argument and the reason.
func (e *ArgumentError) Error() string { return e.Path + ": " + e.Reason }

// Argument returns the path of the argument at fault, so that a linter can point at it.
func (e *ArgumentError) Argument() string { return e.Path }

// Parse reads and checks the arguments. Every refusal is an ArgumentError, all of them joined.
func Parse(conf *service.ParsedConfig) (Config, error) {
	var c Config
	var errs [8]error
	c.Database, errs[0] = conf.FieldString(fieldDatabase)
	c.DeadLetters, errs[1] = conf.FieldString(fieldDeadLetters)
	c.Attempts, errs[2] = conf.FieldInt(fieldAttempts)
	c.Lanes, errs[3] = conf.FieldInt(fieldLanes)
	c.KeepMonths, errs[4] = conf.FieldInt(fieldKeepMonths)
	c.AheadMonths, errs[5] = conf.FieldInt(fieldAheadMonths)
	if c.RetryDelay, errs[6] = conf.FieldDuration(fieldRetryDelay); errs[6] != nil {
		errs[6] = &ArgumentError{Path: fieldRetryDelay, Reason: "is no duration such as 200ms"}
	}
	c.Faults, errs[7] = readVerdicts(conf)
	if err := errors.Join(errs[:]...); err != nil {
		return Config{}, err
	}
	if err := c.check(); err != nil {
		return Config{}, err
	}
	return c, nil
}

func readVerdicts(conf *service.ParsedConfig) (fault.Table, error) {
	given, err := conf.FieldStringMap(fieldVerdicts)
	if err != nil {
		return fault.Table{}, err
	}
	verdicts, errs := map[string]fault.Verdict{}, []error(nil)
	for _, code := range slices.Sorted(maps.Keys(given)) {
		verdict, err := fault.ParseVerdict(given[code])
		if err != nil {
			errs = append(errs, &ArgumentError{Path: fieldVerdicts + "." + code, Reason: err.Error()})
		}
		verdicts[code] = verdict
	}
	table, err := fault.Default().With(verdicts)
	if err != nil {
		errs = append(errs, &ArgumentError{Path: fieldVerdicts, Reason: err.Error()})
	}
	return table, errors.Join(errs...)
}

func (c Config) check() error {
	var errs []error
	want := func(ok bool, path, format string, args ...any) {
		if !ok {
			errs = append(errs, &ArgumentError{Path: path, Reason: fmt.Sprintf(format, args...)})
		}
	}
	between := func(path string, n, low, high int) {
		want(n >= low && n <= high, path, "must be %d to %d, not %d", low, high, n)
	}
	want(c.Database != "", fieldDatabase, "names no postgres resource")
	want(c.RetryDelay >= 0 && c.RetryDelay <= maxDelay, fieldRetryDelay, "must be 0s to %s, not %s", maxDelay, c.RetryDelay)
	between(fieldAttempts, c.Attempts, 1, maxAttempts)
	between(fieldLanes, c.Lanes, 1, maxLanes)
	between(fieldKeepMonths, c.KeepMonths, 0, maxMonths)
	between(fieldAheadMonths, c.AheadMonths, 0, maxMonths)
	return errors.Join(errs...)
}
