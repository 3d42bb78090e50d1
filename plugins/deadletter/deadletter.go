package deadletter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"appliance/internal/carrier"
	"appliance/internal/fault"
	"appliance/internal/intake"
	"appliance/internal/pg"
	"appliance/internal/run"
)

// connectTimeout bounds one attempt to reach the database. The engine would retry a failing Connect for ever, so a failure
// ends the run instead, and counts to its restart budget.
const connectTimeout = 30 * time.Second

// Store is the database that holds the index.
type Store interface {
	// WriteDeadLetters stores entries and positions in one transaction. Storing an entry again changes nothing. After an
	// error nothing is stored, or, where the connection broke, all of it may be.
	WriteDeadLetters(ctx context.Context, group string, entries []pg.DeadLetter, positions []pg.Position) error
}

// Deps is what the output is given by the process it runs in.
type Deps struct {
	Run   *run.Run
	Group string // the consumer group of the pipeline's input: checkpoints are stored under it
	Now   func() time.Time
	// Wait returns nil after d, or the context's error once that ends. Nil is a timer.
	Wait func(ctx context.Context, d time.Duration) error

	Database func(ctx context.Context, name string) (Store, error)
	// Receipt is called once the batch is indexed, before the engine learns of it. Nil where nobody asks.
	Receipt func(b *intake.Batch)
}

// Register adds the output to the environment.
func Register(env *service.Environment, deps Deps) error {
	return env.RegisterBatchOutput(Name, Spec(), func(conf *service.ParsedConfig, _ *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
		c, err := Parse(conf)
		if err != nil {
			return nil, service.BatchPolicy{}, 0, err
		}
		return newOutput(c, deps), service.BatchPolicy{}, maxLanes, nil
	})
}

func newOutput(c Config, deps Deps) *output {
	if deps.Wait == nil {
		deps.Wait = wait
	}
	if deps.Receipt == nil {
		deps.Receipt = func(*intake.Batch) {}
	}
	return &output{conf: c, deps: deps, faults: fault.Default()}
}

// output is the index. The engine calls Connect until it returns nil, then WriteBatch from as many goroutines as there are
// lanes, and Close once they all returned.
type output struct {
	conf   Config
	deps   Deps
	faults fault.Table
	store  Store
}

var _ service.BatchOutput = (*output)(nil)

// ErrConnect is the cause of a run that could not reach the index's database.
var ErrConnect = errors.New("connect output")

// Connect takes the process's database.
func (o *output) Connect(ctx context.Context) error {
	if cause := o.deps.Run.Cause(); cause != nil {
		return cause
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	store, err := o.deps.Database(ctx, o.conf.Database)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrConnect, err)
		o.deps.Run.Fail(err)
		return err
	}
	o.store = store
	return nil
}

// ErrNoCarrier tells that a message lost the record it was made of.
var ErrNoCarrier = errors.New("a message names no record: a processor ahead of the index makes new messages")

// WriteBatch indexes the records of the batch together with the checkpoint, or returns an error and leaves all of them to
// be read again. An error other than pg.ErrFenced, and other than one because ctx ended, has ended the run.
func (o *output) WriteBatch(ctx context.Context, batch service.MessageBatch) (err error) {
	defer func() {
		if p := recover(); p != nil { // the engine doesn't recover: the process would end with all its pipelines
			err = o.fail(ctx, fmt.Errorf("panic: %v", p))
		}
	}()
	carriers, err := read(batch) //nolint:contextcheck // a message's context carries its record and no deadline
	if err != nil {
		return o.fail(ctx, err)
	}
	w := plan(carriers, o.deps.Now())
	if err := o.write(ctx, w); err != nil {
		return o.fail(ctx, err)
	}
	for _, b := range w.batches {
		o.deps.Receipt(b)
	}
	return nil
}

func read(batch service.MessageBatch) ([]carrier.Carrier, error) {
	carriers := make([]carrier.Carrier, len(batch))
	for i, m := range batch {
		c, ok := carrier.From(m.Context())
		if !ok {
			return nil, ErrNoCarrier
		}
		carriers[i] = c
	}
	return carriers, nil
}

// write tries until it succeeds, the error is not of the moment, or the attempts are used.
func (o *output) write(ctx context.Context, w work) error {
	atOnce := true
	for n := 1; ; n++ {
		err := o.store.WriteDeadLetters(ctx, o.deps.Group, w.entries, w.positions)
		if err == nil || ctx.Err() != nil || errors.Is(err, pg.ErrFenced) {
			return err
		}
		code, constraint, _ := pg.Code(err)
		if o.faults.Classify(code, constraint) != fault.Transient {
			return err
		}
		if n >= o.conf.Attempts {
			return fmt.Errorf("attempt %d of %d: %w", n, o.conf.Attempts, err)
		}
		if atOnce && o.faults.Row(code).AtOnce {
			atOnce = false
			continue
		}
		if waited := o.deps.Wait(ctx, o.conf.RetryDelay); waited != nil {
			return fmt.Errorf("%w, after %w", waited, err)
		}
	}
}

// fail ends the run because of err, and returns it with a name. Being fenced is no failure: the partition has another
// owner, or is claimed again. Nor is being stopped.
func (o *output) fail(ctx context.Context, err error) error {
	err = fmt.Errorf("write dead-letter index: %w", err)
	if !errors.Is(err, pg.ErrFenced) && ctx.Err() == nil {
		o.deps.Run.Fail(err)
	}
	return err
}

// Close does nothing: the database belongs to the process.
func (o *output) Close(context.Context) error { return nil }

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
