package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"appliance/internal/broker"
	"appliance/internal/carrier"
	"appliance/internal/intake"
	"appliance/internal/pg"
	"appliance/internal/run"
)

// connectTimeout bounds one attempt to open the subscription. The engine would retry a failing Connect for ever, so a
// failure ends the run instead, and counts to its restart budget.
const connectTimeout = 30 * time.Second

// Subscription hands out batches and takes their receipts. It outlives the input: a reload hands it on.
type Subscription interface {
	Next(ctx context.Context, ended <-chan struct{}) (*intake.Batch, error)
	Ack(b *intake.Batch)
	Nack(b *intake.Batch, fenced bool)
}

// Deps is what the input is given by the process it runs in.
type Deps struct {
	Run *run.Run
	// Subscribe returns the subscription of the process for these arguments, and opens it if there is none.
	Subscribe func(ctx context.Context, c Config) (Subscription, error)
	// Settled reports whether the output made every record of the batch durable, and forgets the batch. Nil where the
	// pipeline's output gives no receipts: then the engine's ack counts.
	Settled func(b *intake.Batch) bool
	// Dropped makes a batch durable that the engine acknowledged and the output never saw. Set where Settled is.
	Dropped func(ctx context.Context, b *intake.Batch) error
}

// ErrConnect is the cause of a run that could not open its subscription.
var ErrConnect = errors.New("connect input")

// ErrPanic is the cause of a run whose subscription panicked. The engine recovers nothing: the process would end with all
// its pipelines.
var ErrPanic = errors.New("panic")

// ErrRefused is the cause of a run whose output refused a batch and had not ended the run itself. The batch would come
// back at once and be refused at once; a restart waits between, and counts.
var ErrRefused = errors.New("the output refused a batch")

// Register adds the input to the environment.
func Register(env *service.Environment, deps Deps) error {
	return env.RegisterBatchInput(Name, Spec(), func(conf *service.ParsedConfig, _ *service.Resources) (service.BatchInput, error) {
		c, err := Parse(conf)
		if err != nil {
			return nil, err
		}
		return &input{conf: c, deps: deps}, nil
	})
}

// input is the gate. The engine calls Connect until it returns nil, then ReadBatch in turn until the end of input, and
// Close once every ack has come back.
type input struct {
	conf Config
	deps Deps
	sub  Subscription
}

var _ service.BatchInput = (*input)(nil)

// Connect takes the process's subscription.
func (i *input) Connect(ctx context.Context) (err error) {
	defer i.caught(&err)
	if i.deps.Run.Cause() != nil {
		return service.ErrEndOfInput
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	sub, err := i.deps.Subscribe(ctx, i.conf)
	if err != nil {
		i.deps.Run.Fail(fmt.Errorf("%w: %w", ErrConnect, err))
		return service.ErrEndOfInput
	}
	i.sub = sub
	return nil
}

// ReadBatch waits for the next batch and makes one message of each record. It ends the input once the run has ended.
func (i *input) ReadBatch(ctx context.Context) (_ service.MessageBatch, _ service.AckFunc, err error) {
	defer i.caught(&err)
	if i.sub == nil {
		return nil, nil, service.ErrEndOfInput
	}
	batch, err := i.sub.Next(ctx, i.deps.Run.Ended())
	switch {
	case errors.Is(err, broker.ErrEnded):
		return nil, nil, service.ErrEndOfInput
	case err != nil && ctx.Err() != nil:
		return nil, nil, err
	case err != nil:
		i.deps.Run.Fail(fmt.Errorf("read input: %w", err))
		return nil, nil, service.ErrEndOfInput
	}
	return messages(batch), func(ctx context.Context, err error) error { return i.settle(ctx, batch, err) }, nil
}

// settle is the end of a batch's way: its receipt, or its return to the queue. A batch that the engine calls delivered
// though the ledger never saw it, since processors dropped every message of it, is made durable first.
func (i *input) settle(ctx context.Context, batch *intake.Batch, err error) (failed error) {
	defer i.caught(&failed)
	settled := i.deps.Settled == nil || i.deps.Settled(batch)
	if err == nil && !settled {
		err = i.deps.Dropped(ctx, batch)
	}
	switch {
	case err == nil:
		i.sub.Ack(batch)
	case errors.Is(err, pg.ErrFenced):
		i.sub.Nack(batch, true)
	default:
		i.sub.Nack(batch, false)
		i.deps.Run.Fail(fmt.Errorf("%w: %w", ErrRefused, err))
	}
	return nil
}

// caught makes a panic the end of the run.
func (i *input) caught(err *error) {
	if p := recover(); p != nil {
		i.deps.Run.Fail(fmt.Errorf("read input: %w: %v", ErrPanic, p))
		*err = service.ErrEndOfInput
	}
}

// Close does nothing: the subscription belongs to the process.
func (i *input) Close(context.Context) error { return nil }

func messages(batch *intake.Batch) service.MessageBatch {
	out := make(service.MessageBatch, 0, batch.Len())
	for s := range batch.Spans {
		for r := range batch.Spans[s].Records {
			c := carrier.Carrier{Batch: batch, Span: s, Index: r}
			out = append(out, service.NewMessage(c.Record().Value).WithContext(carrier.With(context.Background(), c)))
		}
	}
	return out
}
