// Package deadletter is the engine's output `postgres_dead_letter_index`: it keeps a view of the dead-letter topic in
// PostgreSQL, by which operators browse, group and replay. The letters themselves stay in the topic.
package deadletter

import (
	"errors"
	"fmt"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// Name is the component's name in HCL, in documentation and in metrics.
const Name = "postgres_dead_letter_index"

// The arguments, as they are written.
const (
	fieldDatabase   = "database"
	fieldAttempts   = "attempts"
	fieldRetryDelay = "retry_delay"
)

// Bounds of what may be configured.
const (
	maxLanes    = 64               // the input's own bound: it is the gate, and never hands out more
	maxAttempts = 100              // beyond this the restart budget is the better place to wait
	maxDelay    = 30 * time.Second // a batch that waits longer holds its partitions for longer than a rebalance takes
)

// Config is what the arguments say, checked.
type Config struct {
	Database   string // name of the postgres resource
	Attempts   int    // at one write before the run fails, at least 1
	RetryDelay time.Duration
}

// Spec documents the component.
func Spec() *service.ConfigSpec {
	return service.NewConfigSpec().
		Summary("Keeps an index of a dead-letter topic, and how far the group has come, in one transaction.").
		Description("Each letter is one row of `events.dead_letter`, by the coordinates of the record that was refused: "+
			"reason, detail, a fingerprint of both by which letters of one kind are grouped, the event's identity where it "+
			"is readable, how often it was replayed, and where the letter lies. A further copy of a letter counts on its row, "+
			"reading the topic again counts nothing twice, and what an operator decided about a letter stays.\n\n"+
			"Whatever the topic holds is indexed: a record that is no readable dead letter has a row with `readable` false "+
			"and its problem. Processors ahead of this output may drop messages, which are then not indexed; what they make "+
			"of a message doesn't matter, since the index is made of the record.\n\n"+
			"An error of the moment is tried again, `attempts` times, and then ends the run, which the supervisor starts "+
			"again; any other error of the database ends the run at once. Nothing becomes a dead letter here.").
		Fields(
			service.NewStringField(fieldDatabase).Description("The `postgres` resource, as `postgres.events`."),
			service.NewIntField(fieldAttempts).Default(3).Description("Attempts at one write, 1 to 100, while the error is of the moment."),
			service.NewDurationField(fieldRetryDelay).Default("200ms").
				Description("Wait between two attempts. Short on purpose: the real backoff is the pipeline's restart."),
		).
		Example("The index", "The shipped pipeline's output.", `
output:
  postgres_dead_letter_index:
    database: events
`).
		Example("Not those of a test", "Leaves letters of one pipeline out of the index; they stay in the topic.", `
pipeline:
  processors:
    - mapping: |
        root = if this.data.pipeline.or("") == "test" { deleted() }

output:
  postgres_dead_letter_index:
    database: events
    attempts: 5
    retry_delay: 1s
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
	var errs [3]error
	c.Database, errs[0] = conf.FieldString(fieldDatabase)
	c.Attempts, errs[1] = conf.FieldInt(fieldAttempts)
	if c.RetryDelay, errs[2] = conf.FieldDuration(fieldRetryDelay); errs[2] != nil {
		errs[2] = &ArgumentError{Path: fieldRetryDelay, Reason: "is no duration such as 200ms"}
	}
	if err := errors.Join(errs[:]...); err != nil {
		return Config{}, err
	}
	if err := c.check(); err != nil {
		return Config{}, err
	}
	return c, nil
}

func (c Config) check() error {
	var errs []error
	want := func(ok bool, path, format string, args ...any) {
		if !ok {
			errs = append(errs, &ArgumentError{Path: path, Reason: fmt.Sprintf(format, args...)})
		}
	}
	want(c.Database != "", fieldDatabase, "names no postgres resource")
	want(c.Attempts >= 1 && c.Attempts <= maxAttempts, fieldAttempts, "must be 1 to %d, not %d", maxAttempts, c.Attempts)
	want(c.RetryDelay >= 0 && c.RetryDelay <= maxDelay, fieldRetryDelay, "must be 0s to %s, not %s", maxDelay, c.RetryDelay)
	return errors.Join(errs...)
}
