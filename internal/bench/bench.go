// Package bench measures the main job against the least that storing the same rows can cost, on real services, in topics
// and a database of its own that it removes again.
package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"appliance/internal/binding"
	"appliance/internal/broker"
	"appliance/internal/generate"
	"appliance/internal/pg"
)

// Options say what is measured and where.
type Options struct {
	Events   int
	Rounds   int // floor and program in turns; 0 means 2
	Name     string
	Program  []string // the program and its arguments; it reads its configuration from the environment
	Environ  []string // what it inherits, KEY=VALUE
	Settings map[string]string

	Cluster  broker.Cluster
	Database pg.Config // a database beside this one is made
	Seed     uint64
	Load     float64 // load average before the measurement

	Now      func() time.Time
	Progress func(stage string, done, total int64)
}

const (
	partitions        = 12
	letterPartitions  = 3
	monthsBack, ahead = 13, 3 // as the shipped configuration keeps them
	floorConnections  = 4
	stalled           = 2 * time.Minute        // without a row of progress a run has failed
	poll              = 100 * time.Millisecond // between two looks at the checkpoints, which cost the server next to nothing
	cleanWithin       = time.Minute
)

// bench is one measurement on its way.
type bench struct {
	opts           Options
	admin          *broker.Admin
	db             *pg.DB
	url            string
	rows           [][]byte
	topic, letters string
	groups         []string
}

// Run measures. Whatever it made is removed, also after an error; what could not be removed is part of the error.
func Run(ctx context.Context, o Options) (result Result, err error) {
	if o.Rounds == 0 {
		o.Rounds = 2
	}
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	b := &bench{opts: o, topic: o.Name, letters: o.Name + ".dlq"}
	b.admin, err = broker.NewAdmin(o.Cluster)
	if err != nil {
		return Result{}, fmt.Errorf("bench: %w", err)
	}
	defer b.admin.Close()
	defer func() { err = errors.Join(err, b.clean(ctx)) }()
	version, err := b.admin.Version(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("bench: %w", err)
	}
	if err := b.prepare(ctx); err != nil {
		return Result{}, fmt.Errorf("bench: %w", err)
	}
	var rounds []Round
	for n := range o.Rounds {
		round, err := b.round(ctx, n)
		if err != nil {
			return Result{}, fmt.Errorf("bench: round %d: %w", n+1, err)
		}
		rounds = append(rounds, round)
	}
	return summarise("kafka "+version, o.Events, o.Load, rounds), nil
}

// prepare makes the database and the topics, and puts the events onto the topic.
func (b *bench) prepare(ctx context.Context) error {
	beside, err := pg.CreateDatabase(ctx, b.opts.Database, b.database())
	if err != nil {
		return err
	}
	b.url = beside.URL
	if _, err := pg.Migrate(ctx, beside); err != nil {
		return err
	}
	beside.MaxConns = floorConnections + 1
	if b.db, err = pg.Open(ctx, beside); err != nil {
		return err
	}
	now := b.opts.Now()
	if _, err := b.db.EnsureMonths(ctx, now, monthsBack, ahead); err != nil {
		return err
	}
	g, err := generate.New(generate.Options{Seed: b.opts.Seed, Now: now, Total: b.opts.Events})
	if err != nil {
		return err
	}
	if b.rows, err = encodeRows(g, b.opts.Events, partitions); err != nil {
		return err
	}
	_, err = b.admin.Ensure(ctx, []broker.Topic{
		{Name: b.topic, Partitions: partitions, Replication: -1},
		{Name: b.letters, Partitions: letterPartitions, Replication: -1},
	})
	if err != nil {
		return err
	}
	return b.preload(ctx, g)
}

// database is a name that PostgreSQL takes without quotes.
func (b *bench) database() string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(b.opts.Name))
}

func (b *bench) preload(ctx context.Context, g *generate.Generator) error {
	p, err := broker.NewProducer(b.opts.Cluster, broker.DeliveryTimeout)
	if err != nil {
		return err
	}
	defer p.Close()
	for n := range b.opts.Events {
		r, err := binding.Structured(g.Line(n).Raw)
		if err != nil {
			return err
		}
		r.Topic = b.topic
		if err := p.Produce(ctx, r); err != nil {
			return err
		}
		if n%1000 == 0 {
			b.opts.Progress("preload", int64(n), int64(b.opts.Events))
		}
	}
	acked, err := p.Flush(ctx)
	if err == nil && acked != b.opts.Events {
		err = fmt.Errorf("the broker has %d of %d events", acked, b.opts.Events)
	}
	return err
}

func (b *bench) round(ctx context.Context, n int) (Round, error) {
	floor, err := b.floor(ctx)
	if err != nil {
		return Round{}, err
	}
	if err := b.db.Empty(ctx); err != nil {
		return Round{}, err
	}
	group := fmt.Sprintf("%s-%d", b.opts.Name, n)
	b.groups = append(b.groups, group, group+"-dlq")
	run, err := b.run(ctx, group)
	return Round{Floor: floor, Run: run}, err
}

// environ is what the program is told: what it would be told anyway, with these services and this run's group.
func (b *bench) environ(group string) []string {
	given := map[string]string{
		"KAFKA_BOOTSTRAP_SERVERS": strings.Join(b.opts.Cluster.Brokers, ","),
		"KAFKA_TOPIC":             b.topic, "KAFKA_DLQ_TOPIC": b.letters,
		"KAFKA_GROUP_ID": group, "KAFKA_DLQ_GROUP_ID": group + "-dlq",
		"DATABASE_URL": b.url, "DATABASE_DIRECT_URL": b.url,
		"HTTP_HOST": "127.0.0.1", "HTTP_PORT": "0", "SHUTDOWN_DRAIN_DELAY": "0s",
	}
	maps.Copy(given, b.opts.Settings)
	var all []string
	for _, kv := range b.opts.Environ {
		name, _, _ := strings.Cut(kv, "=")
		if _, replaced := given[name]; !replaced {
			all = append(all, kv)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		all = append(all, name+"="+given[name])
	}
	return all
}

// run starts the program and waits until the group's checkpoints cover every event.
func (b *bench) run(ctx context.Context, group string) (ProgramRun, error) {
	began, err := b.db.Clock(ctx)
	if err != nil {
		return ProgramRun{}, err
	}
	c, err := startChild(ctx, b.opts.Program, b.environ(group))
	if err != nil {
		return ProgramRun{}, err
	}
	defer c.terminate() //nolint:errcheck // of a run that failed already; a good one has ended
	if err := b.await(ctx, c, group); err != nil {
		return ProgramRun{}, err
	}
	run := ProgramRun{PeakRSSBytes: c.peakRSS()}
	stopping := b.opts.Now()
	if err := c.drain(); err != nil {
		return ProgramRun{}, err
	}
	run.DrainSeconds = secondsBetween(stopping, b.opts.Now())
	span, err := b.db.Ingested(ctx)
	if err != nil {
		return ProgramRun{}, err
	}
	counts, err := b.db.Counts(ctx)
	if err != nil {
		return ProgramRun{}, err
	}
	run.Seconds, run.StartupSeconds = secondsBetween(began, span.Last), secondsBetween(began, span.First)
	run.Rows, run.Lost, run.Duplicates = span.Rows, int64(b.opts.Events)-counts.Identities, span.Rows-counts.Identities
	return run, nil
}

// await looks at the checkpoints, not at the table: counting rows over and over would slow down what is measured.
func (b *bench) await(ctx context.Context, c *child, group string) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	last, moved := int64(-1), b.opts.Now()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.ended:
			return c.failed()
		case <-tick.C:
		}
		done, err := b.done(ctx, group)
		if err != nil {
			return err
		}
		b.opts.Progress("appliance run", done, int64(b.opts.Events))
		if done >= int64(b.opts.Events) {
			return nil
		}
		if done != last {
			last, moved = done, b.opts.Now()
		}
		if b.opts.Now().Sub(moved) > stalled {
			return fmt.Errorf("no progress for %s at %d of %d events\n%s", stalled, done, b.opts.Events, c.words.text())
		}
	}
}

func (b *bench) done(ctx context.Context, group string) (int64, error) {
	checkpoints, err := b.db.Checkpoints(ctx, group)
	if err != nil {
		return 0, err
	}
	done := int64(0)
	for _, c := range checkpoints {
		if c.Topic == b.topic {
			done += c.Next
		}
	}
	return done, nil
}

// clean removes what was made. It works on after ctx ended: a measurement that was interrupted leaves nothing behind.
func (b *bench) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanWithin)
	defer cancel()
	if b.db != nil {
		b.db.Close()
	}
	err := errors.Join(
		b.admin.Remove(ctx, []string{b.topic, b.letters}, b.groups),
		pg.DropDatabase(ctx, b.opts.Database, b.database()),
	)
	if err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	return nil
}
