package ledger

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redpanda-data/benthos/v4/public/service"
	"go.uber.org/goleak"

	"appliance/internal/carrier"
	"appliance/internal/deadletter"
	"appliance/internal/intake"
	"appliance/internal/pg"
	"appliance/internal/run"
	"appliance/internal/testservices"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const group = "test-group"

// bench is an output on a database of its own, and what it did.
type bench struct {
	t   *testing.T
	url string
	db  *pg.DB
	run *run.Run
	out *output

	published [][]deadletter.Letter
	onPublish func() error
	delays    []time.Duration
	onWait    func()
	receipts  []*intake.Batch
	tries     int
	writes    int
	counts    map[string]int
}

// newBench takes YAML for the output's arguments beside its resources. The database has partitions for the months around at.
func newBench(t *testing.T, arguments string) *bench {
	t.Helper()
	b := &bench{t: t, url: testservices.Postgres(t), counts: map[string]int{}}
	if _, err := pg.Migrate(t.Context(), pg.Config{URL: b.url}); err != nil {
		t.Fatal(err)
	}
	var err error
	if b.db, err = pg.Open(t.Context(), pg.Config{URL: b.url}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.db.Close)
	if _, err := b.db.EnsureMonths(t.Context(), at, 1, 1); err != nil {
		t.Fatal(err)
	}
	for p := range int32(3) {
		b.claim(p)
	}
	b.start("database: events\ndead_letters: main\n" + arguments)
	return b
}

// start begins a run with a fresh output, as the supervisor does after a failure.
func (b *bench) start(arguments string) {
	b.t.Helper()
	parsed, err := Spec().ParseYAML(arguments, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	conf, err := Parse(parsed)
	if err != nil {
		b.t.Fatal(err)
	}
	b.run = run.New("persist")
	b.out = &output{conf: conf, deps: b.deps()}
	if err := b.out.Connect(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) deps() Deps {
	return Deps{
		Run: b.run, Group: group, Meter: b, Now: func() time.Time { return at },
		Wait: func(ctx context.Context, d time.Duration) error {
			b.delays = append(b.delays, d)
			if b.onWait != nil {
				b.onWait()
			}
			return ctx.Err()
		},
		Database:    func(context.Context, string) (Store, error) { return counting{b.db, b}, nil },
		DeadLetters: func(context.Context, string) (Publisher, error) { return b, nil },
		Receipt:     func(batch *intake.Batch) { b.receipts = append(b.receipts, batch) },
	}
}

// counting is the database itself, with its calls counted.
type counting struct {
	*pg.DB
	b *bench
}

func (c counting) Write(ctx context.Context, group string, rows []pg.Row, positions []pg.Position) (int, error) {
	c.b.writes++
	return c.DB.Write(ctx, group, rows, positions)
}

func (c counting) Try(ctx context.Context, rows []pg.Row) error {
	c.b.tries++
	return c.DB.Try(ctx, rows)
}

// Publish records what reaches the broker; what the broker does with it is tested with one.
func (b *bench) Publish(_ context.Context, letters []deadletter.Letter) error {
	if b.onPublish != nil {
		if err := b.onPublish(); err != nil {
			return err
		}
	}
	b.published = append(b.published, slices.Clone(letters))
	return nil
}

func (b *bench) BatchSize(n int)                              { b.counts["size"] += n }
func (b *bench) BatchLatency(outcome string, _ time.Duration) { b.counts[outcome]++ }
func (b *bench) Persisted(eventType string, n int)            { b.counts["persisted "+eventType] += n }
func (b *bench) Duplicate(n int)                              { b.counts["duplicate"] += n }
func (b *bench) Retimed(n int)                                { b.counts["retimed"] += n }
func (b *bench) Poison(reason string, n int)                  { b.counts["poison "+reason] += n }

func (b *bench) claim(partition int32) pg.Claim {
	b.t.Helper()
	c, err := b.db.Claim(b.t.Context(), group, "events", [16]byte{1}, partition, "me")
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

func engineBatch(messages []message) service.MessageBatch {
	var out service.MessageBatch
	for _, m := range messages {
		em := service.NewMessage(m.bytes).WithContext(carrier.With(context.Background(), m.carrier))
		if m.failed != nil {
			em.SetError(m.failed)
		}
		out = append(out, em)
	}
	return out
}

func (b *bench) write(messages []message) error {
	return b.out.WriteBatch(b.t.Context(), engineBatch(messages))
}

func (b *bench) exec(statement string) {
	b.t.Helper()
	conn, err := pgx.Connect(b.t.Context(), b.url)
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(b.t.Context(), statement); err != nil {
		b.t.Fatalf("%s: %v", statement, err)
	}
}

func (b *bench) number(query string) (n int) {
	b.t.Helper()
	conn, err := pgx.Connect(b.t.Context(), b.url)
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(b.t.Context(), query).Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n
}

// raise makes each insert of an event with that id fail with the SQLSTATE, the first n times.
func (b *bench) raise(state, id string, n int) {
	b.t.Helper()
	b.exec(fmt.Sprintf(`CREATE SEQUENCE IF NOT EXISTS public.raised; SELECT setval('public.raised', 1, false);
CREATE OR REPLACE FUNCTION public.raise() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.raw ->> 'id' = '%[2]s' AND nextval('public.raised') <= %[3]d THEN
    RAISE EXCEPTION 'injected' USING ERRCODE = '%[1]s';
  END IF;
  RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER raise BEFORE INSERT ON events.cloud_event FOR EACH ROW EXECUTE FUNCTION public.raise()`, state, id, n))
}

// always is more often than any test tries.
const always = 1 << 30

// stored returns the number of rows, and the stored offset of each partition that has one.
func (b *bench) stored() (rows int64, next map[int32]int64) {
	b.t.Helper()
	counts, err := b.db.Counts(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	points, err := b.db.Checkpoints(b.t.Context(), group)
	if err != nil {
		b.t.Fatal(err)
	}
	next = map[int32]int64{}
	for _, p := range points {
		if p.Found {
			next[p.Partition] = p.Next
		}
	}
	return counts.Events, next
}

func (b *bench) letters() []string {
	var out []string
	for _, call := range b.published {
		for _, l := range call {
			out = append(out, fmt.Sprintf("%d/%d:%s", l.Record.Partition, l.Record.Offset, l.Reason))
		}
	}
	return out
}

// expect is the state after everything of a batch is durable.
func (b *bench) expect(rows, next int64, letters ...string) {
	b.t.Helper()
	got, points := b.stored()
	if got != rows || points[0] != next {
		b.t.Errorf("%d rows and checkpoint %v, want %d and %d", got, points, rows, next)
	}
	if have := b.letters(); !slices.Equal(have, letters) {
		b.t.Errorf("letters %q, want %q", have, letters)
	}
}

// untouched is the state after a batch that is to be read again.
func (b *bench) untouched() {
	b.t.Helper()
	rows, next := b.stored()
	if rows != 0 || len(next) != 0 || len(b.receipts) != 0 {
		b.t.Errorf("%d rows, checkpoints %v, %d receipts; want none", rows, next, len(b.receipts))
	}
}
