package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"appliance/internal/broker"
	"appliance/internal/intake"
	"appliance/internal/pipeline"
	"appliance/internal/run"
	"appliance/internal/supervisor"
	"appliance/plugins"
	"appliance/plugins/deadletter"
	"appliance/plugins/kafka"
	"appliance/plugins/ledger"
)

// addPipeline makes the runner of one pipeline, and notes its consumer group.
func (a *App) addPipeline(p *pipeline.Pipeline) {
	policy := supervisor.Policy{
		MinBackoff: p.Restart.MinBackoff, MaxBackoff: p.Restart.MaxBackoff, Jitter: p.Restart.Jitter,
		Budget: supervisor.Budget{Restarts: p.Restart.Restarts, Within: p.Restart.Within},
	}
	r := newRunner(p.Name, policy, p.DrainTimeout, a.log, a.clock, a.meter)
	group, has := a.groupOf(p)
	if has {
		a.groups[p.Name] = group
	}
	r.execute = func(ctx context.Context, current *run.Run, ran func()) error {
		return a.execute(ctx, p, group, current, ran)
	}
	r.leave = func(ctx context.Context) error { return a.subs.leave(ctx, p.Name) }
	a.runners = append(a.runners, r)
}

func (a *App) groupOf(p *pipeline.Pipeline) (groupOf, bool) {
	if p.Kafka == nil {
		return groupOf{}, false
	}
	g := groupOf{pipeline: p.Name, group: p.Kafka.Group, topics: p.Kafka.Topics, admin: a.res.admins[p.Kafka.Cluster]}
	for _, c := range p.Components {
		switch conf := c.Config.(type) {
		case ledger.Config:
			g.db, g.ledger = a.res.databases[conf.Database], true
		case deadletter.Config:
			g.db = a.res.databases[conf.Database]
		}
	}
	return g, true
}

// execute is one run of one pipeline: an environment of its own, whose constructors close over the run.
func (a *App) execute(ctx context.Context, p *pipeline.Pipeline, g groupOf, current *run.Run, ran func()) error {
	log := a.log.With(slog.String("pipeline", p.Name))
	env := pipeline.Engine()
	if err := plugins.Register(env, a.deps(g, current, ran, log)); err != nil {
		return fmt.Errorf("register plugins: %w", err)
	}
	if p.Kafka == nil {
		ran() // nothing tells when an input of the engine's core has connected
	}
	err := execute(env, p.YAML, current, p.DrainTimeout, log)
	if errors.Is(err, errAbandoned) {
		a.abandon(p.Name, log)
		return err
	}
	if sub := a.subs.ofPipeline(p.Name); sub != nil {
		sub.Settle() // only now: the engine is done with every batch
		a.commit(ctx, sub, log)
	}
	return err
}

// abandon leaves the group without waiting for the batches that the engine still holds: what it writes later is fenced by
// the next owner's claim, and what it acks later commits nothing.
func (a *App) abandon(name string, log *slog.Logger) {
	log.Error("stream did not end in time and was given up")
	ctx, cancel := context.WithTimeout(context.Background(), drainGrace)
	defer cancel()
	if err := a.subs.leave(ctx, name); err != nil {
		log.Warn("leave group", slog.Any("error", err))
	}
}

func (a *App) commit(ctx context.Context, sub *broker.Subscription, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainGrace)
	defer cancel()
	if err := sub.Commit(ctx); err != nil {
		log.Warn("commit offsets after the run", slog.Any("error", err))
	}
}

func (a *App) deps(g groupOf, current *run.Run, ran func(), log *slog.Logger) plugins.Deps {
	var receipts receipts
	d := plugins.Deps{Kafka: kafka.Deps{
		Run: current,
		Subscribe: func(ctx context.Context, c kafka.Config) (kafka.Subscription, error) {
			sub, err := a.subscribe(ctx, g, c, current, log)
			if err == nil {
				ran()
			}
			return sub, err
		},
	}}
	if g.ledger { // elsewhere a processor may drop what it likes: it costs a view and not an event
		d.Kafka.Settled, d.Kafka.Dropped = receipts.take, receipts.settle
	}
	d.Ledger = ledger.Deps{
		Run: current, Group: g.group, Meter: a.meter, Now: a.clock.Now, Receipt: receipts.give, Connected: receipts.connect,
		Database: func(_ context.Context, name string) (ledger.Store, error) {
			return named(a.res.databases, "postgres", name)
		},
		DeadLetters: func(_ context.Context, name string) (ledger.Publisher, error) {
			return named(a.res.letters, "dead_letters", name)
		},
	}
	d.DeadLetter = deadletter.Deps{
		Run: current, Group: g.group, Now: a.clock.Now,
		Database: func(_ context.Context, name string) (deadletter.Store, error) {
			return named(a.res.databases, "postgres", name)
		},
	}
	return d
}

func (a *App) subscribe(ctx context.Context, g groupOf, c kafka.Config, current *run.Run, log *slog.Logger) (*broker.Subscription, error) {
	var checkpoints broker.Checkpoints
	if g.db != nil {
		checkpoints = claims{db: g.db, group: g.group, owner: a.opts.Owner}
	}
	return a.subs.get(ctx, g.pipeline, c, current.Cause, checkpoints, observer{pipeline: g.pipeline, group: g.group, log: log, meter: a.meter})
}

func named[T any](all map[string]T, kind, name string) (T, error) {
	v, ok := all[name]
	if !ok {
		return v, fmt.Errorf("%s %s is not configured", kind, name)
	}
	return v, nil
}

// receipts holds the batches that the output made durable and the engine has not acknowledged yet, and what makes one
// durable that the output never saw.
type receipts struct {
	mu      sync.Mutex
	given   map[*intake.Batch]bool
	dropped func(context.Context, *intake.Batch) error
}

func (r *receipts) connect(dropped func(context.Context, *intake.Batch) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropped = dropped
}

// errNotConnected is the refusal of a batch that was acknowledged before the output connected.
var errNotConnected = errors.New("a batch was acknowledged before the output connected")

func (r *receipts) settle(ctx context.Context, b *intake.Batch) error {
	r.mu.Lock()
	dropped := r.dropped
	r.mu.Unlock()
	if dropped == nil {
		return errNotConnected
	}
	return dropped(ctx, b)
}

func (r *receipts) give(b *intake.Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.given == nil {
		r.given = map[*intake.Batch]bool{}
	}
	r.given[b] = true
}

func (r *receipts) take(b *intake.Batch) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	given := r.given[b]
	delete(r.given, b)
	return given
}
