// Package ledger is the engine's output `postgres_ledger`: where a record becomes a row or a dead letter, and only then
// counts as read. Three things happen in this order, and each alone decides whether a crash loses something: dead letters
// are durable at the broker; rows and checkpoint commit in one transaction; the batch gets its receipt.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"appliance/internal/carrier"
	"appliance/internal/deadletter"
	"appliance/internal/intake"
	"appliance/internal/pg"
	"appliance/internal/run"
)

// connectTimeout bounds one attempt to reach the resources. The engine would retry a failing Connect for ever, so a
// failure ends the run instead, and counts to its restart budget.
const connectTimeout = 30 * time.Second

// Store is the database behind the ledger.
type Store interface {
	// Ping returns nil when the database answers.
	Ping(ctx context.Context) error
	// Write stores rows and positions in one transaction and returns how many rows are new. After an error nothing is
	// stored, or, where the connection broke, all of it may be.
	Write(ctx context.Context, group string, rows []pg.Row, positions []pg.Position) (int, error)
	// Try does the same with the rows and takes it back: nil says that they would be stored.
	Try(ctx context.Context, rows []pg.Row) error
	// EnsureMonths makes the missing partitions of the maintained months and returns how many it made.
	EnsureMonths(ctx context.Context, now time.Time, back, ahead int) (int, error)
}

// Publisher puts dead letters on their topic in the order given, and returns nil once the broker has all of them.
type Publisher interface {
	Publish(ctx context.Context, letters []deadletter.Letter) error
}

// Meter counts what became of records.
type Meter interface {
	BatchSize(records int)
	BatchLatency(outcome string, took time.Duration) // outcome is success or failure
	Persisted(eventType string, records int)         // new or already there
	Duplicate(records int)                           // those of them that were there already
	Retimed(records int)                             // id and source of another of the batch, with another time
	Poison(reason string, records int)               // dead letters
}

// Deps is what the output is given by the process it runs in.
type Deps struct {
	Run   *run.Run
	Group string // the consumer group of the pipeline's input: checkpoints are stored under it
	Meter Meter
	Now   func() time.Time
	// Wait returns nil after d, or the context's error once that ends. Nil is a timer.
	Wait func(ctx context.Context, d time.Duration) error

	Database    func(ctx context.Context, name string) (Store, error)
	DeadLetters func(ctx context.Context, name string) (Publisher, error)
	// Receipt is called once every record of the batch is durable, before the engine learns of it.
	Receipt func(b *intake.Batch)
	// Connected is given what makes a batch durable of which no message reaches the output, since processors dropped them
	// all: it becomes dead letters and a checkpoint, as the rest of a batch does. Nil where nobody asks.
	Connected func(dropped func(ctx context.Context, b *intake.Batch) error)
}

// Register adds the output to the environment.
func Register(env *service.Environment, deps Deps) error {
	if deps.Wait == nil {
		deps.Wait = wait
	}
	return env.RegisterBatchOutput(Name, Spec(), func(conf *service.ParsedConfig, _ *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
		c, err := Parse(conf)
		if err != nil {
			return nil, service.BatchPolicy{}, 0, err
		}
		return &output{conf: c, deps: deps}, service.BatchPolicy{}, c.Lanes, nil
	})
}

// output is the ledger. The engine calls Connect until it returns nil, then WriteBatch from as many goroutines as there
// are lanes, and Close once they all returned.
type output struct {
	conf    Config
	deps    Deps
	store   Store
	letters Publisher // nil without dead letters
}

var _ service.BatchOutput = (*output)(nil)

// ErrConnect is the cause of a run that could not reach the ledger's resources.
var ErrConnect = errors.New("connect output")

// Connect takes the process's resources.
func (o *output) Connect(ctx context.Context) error {
	if cause := o.deps.Run.Cause(); cause != nil {
		return cause
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := o.connect(ctx); err != nil {
		err = fmt.Errorf("%w: %w", ErrConnect, err)
		o.deps.Run.Fail(err)
		return err
	}
	if o.deps.Connected != nil {
		o.deps.Connected(o.dropped)
	}
	return nil
}

// dropped makes a batch durable that the engine acknowledges without having written it.
func (o *output) dropped(ctx context.Context, b *intake.Batch) error {
	if err := o.settle(ctx, settleDropped(b, o.deps.Run.Pipeline, o.deps.Now())); err != nil {
		return o.fail(ctx, err)
	}
	return nil
}

func (o *output) connect(ctx context.Context) (err error) {
	if o.store, err = o.deps.Database(ctx, o.conf.Database); err != nil {
		return err
	}
	if o.conf.DeadLetters != "" {
		o.letters, err = o.deps.DeadLetters(ctx, o.conf.DeadLetters)
	}
	return err
}

// ErrNoCarrier tells that a message lost the record it was made of.
var ErrNoCarrier = errors.New("a message names no record: a processor ahead of the ledger makes new messages")

// WriteBatch makes every record of the batch durable, or returns an error and leaves all of them to be read again. An
// error other than pg.ErrFenced, and other than one because ctx ended, has ended the run.
func (o *output) WriteBatch(ctx context.Context, batch service.MessageBatch) (err error) {
	started := o.deps.Now()
	defer func() {
		if p := recover(); p != nil { // the engine doesn't recover: the process would end with all its pipelines
			err = o.fail(ctx, fmt.Errorf("panic: %v", p))
		}
		outcome := "success"
		if err != nil {
			outcome = "failure"
		}
		o.deps.Meter.BatchLatency(outcome, o.deps.Now().Sub(started))
	}()
	o.deps.Meter.BatchSize(len(batch))
	messages, err := read(batch) //nolint:contextcheck // a message's context holds its record; nothing waits on it
	if err != nil {
		return o.fail(ctx, err)
	}
	s, err := settle(messages, o.deps.Run.Pipeline, started)
	if err != nil {
		return o.fail(ctx, err)
	}
	if err := o.settle(ctx, s); err != nil {
		return o.fail(ctx, err)
	}
	for _, b := range s.batches {
		o.deps.Receipt(b)
	}
	return nil
}

// fail ends the run because of err, and returns it with a name. Being fenced is no failure: the partition has another
// owner, or is claimed again. Nor is being stopped.
func (o *output) fail(ctx context.Context, err error) error {
	err = fmt.Errorf("write ledger: %w", err)
	if !errors.Is(err, pg.ErrFenced) && ctx.Err() == nil {
		o.deps.Run.Fail(err)
	}
	return err
}

// Close does nothing: the resources belong to the process.
func (o *output) Close(context.Context) error { return nil }

func read(batch service.MessageBatch) ([]message, error) {
	messages := make([]message, len(batch))
	for i, m := range batch {
		c, ok := carrier.From(m.Context())
		if !ok {
			return nil, ErrNoCarrier
		}
		raw, err := m.AsBytes()
		if err == nil {
			err = m.GetError()
		}
		messages[i] = message{carrier: c, bytes: raw, failed: err}
	}
	return messages, nil
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
