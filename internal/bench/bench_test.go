package bench

import (
	"context"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"appliance/internal/broker"
	"appliance/internal/generate"
	"appliance/internal/pg"
	"appliance/internal/testservices"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSummarise(t *testing.T) {
	rounds := []Round{
		{
			Floor: []FloorRun{{Connections: 1, EventsPerSecond: 900}, {Connections: 2, EventsPerSecond: 1000}, {Connections: 4, EventsPerSecond: 800}},
			Run:   ProgramRun{Seconds: 2, StartupSeconds: 1, Lost: 1, PeakRSSBytes: 5},
		},
		{
			Floor: []FloorRun{{Connections: 1, EventsPerSecond: 600}},
			Run:   ProgramRun{Seconds: 3, StartupSeconds: 2, Duplicates: 2, PeakRSSBytes: 4},
		},
	}
	r := summarise("kafka", 1000, 1.5, rounds)
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"seconds is the median", r.Seconds, 2.5},
		{"the rate counts the start", r.EventsPerSecond, 400},
		{"the floor is the median of each round's best", r.FloorEventsPerSecond, 800},
		{"the ratio is of those two", r.Ratio, 0.5},
		{"the rate from the first row leaves the start out", r.EventsPerSecondFromFirst, 1000},
		{"and so does its ratio", r.RatioFromFirst, 1.25},
		{"what was lost in any round counts", float64(r.Lost), 1},
		{"and what was doubled", float64(r.Duplicates), 2},
		{"memory is the highest", float64(r.PeakRSSBytes), 5},
		{"the load is that of the beginning", r.LoadAverage, 1.5},
	} {
		if math.Abs(c.got-c.want) > 1e-9 {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
	if empty := summarise("kafka", 1000, 0, nil); empty.Ratio != 0 || empty.EventsPerSecond != 0 {
		t.Errorf("nothing measured gives %+v", empty)
	}
}

func TestHighWater(t *testing.T) {
	for _, c := range []struct {
		name, status string
		want         int64
	}{
		{"the peak, not what is held now", "Name:\tx\nVmRSS:\t  10 kB\nVmHWM:\t   20 kB\n", 20 << 10},
		{"a process without memory", "Name:\tx\n", 0},
		{"something unreadable", "VmHWM:\t x kB\n", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := highWater([]byte(c.status)); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestEnvironReplacesWhatItDecides(t *testing.T) {
	b := &bench{url: "postgres://u", topic: "t", letters: "t.dlq", opts: Options{
		Environ:  []string{"KAFKA_TOPIC=other", "PATH=/bin", "EMPTY=", "ADMIN_AUTH_SECRET="},
		Settings: map[string]string{"ADMIN_AUTH_SECRET": "s"},
	}}
	got := b.environ("g")
	for _, want := range []string{"KAFKA_TOPIC=t", "KAFKA_GROUP_ID=g", "DATABASE_DIRECT_URL=postgres://u", "PATH=/bin", "EMPTY=", "ADMIN_AUTH_SECRET=s", "HTTP_PORT=0"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not in %q", want, got)
		}
	}
	for _, unwanted := range []string{"KAFKA_TOPIC=other", "ADMIN_AUTH_SECRET="} {
		if slices.Contains(got, unwanted) {
			t.Errorf("%s is in %q", unwanted, got)
		}
	}
}

// services returns options for a measurement of a program that the test chooses.
func services(t *testing.T, program ...string) Options {
	t.Helper()
	return Options{
		Events: 500, Rounds: 1, Name: "appliance_bench_" + strings.ToLower(t.Name()), Program: program, Environ: os.Environ(),
		Cluster:  broker.Cluster{Brokers: strings.Split(testservices.Kafka(t), ",")},
		Database: pg.Config{URL: testservices.Postgres(t)}, Seed: 1, Now: time.Now,
	}
}

func TestAProgramThatEndsIsToldWithItsLastWords(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	o := services(t, "sh", "-c", "echo topic is $KAFKA_TOPIC; exit 3")
	_, err := Run(ctx, o)
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "topic is "+o.Name) {
		t.Fatalf("got %v", err)
	}
	admin, err := broker.NewAdmin(o.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if missing, err := admin.Missing(ctx, o.Name, o.Name+".dlq"); err != nil || len(missing) != 2 {
		t.Errorf("topics are left: missing %v, %v", missing, err)
	}
	o.Database.MaxConns = 1
	if again, err := pg.CreateDatabase(ctx, o.Database, (&bench{opts: o}).database()); err != nil || again.URL == o.Database.URL {
		t.Errorf("the database is left: %v", err)
	}
	if err := pg.DropDatabase(ctx, o.Database, (&bench{opts: o}).database()); err != nil {
		t.Error(err)
	}
}

// What is copied is the rows that the program would write.
func TestTheFloorStoresEveryEvent(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	o := services(t)
	o.Events = 12_345
	o.Progress = func(string, int64, int64) {}
	if _, err := pg.Migrate(ctx, o.Database); err != nil {
		t.Fatal(err)
	}
	o.Database.MaxConns = 5
	db, err := pg.Open(ctx, o.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	if _, err := db.EnsureMonths(ctx, now, 1, 1); err != nil {
		t.Fatal(err)
	}
	g, err := generate.New(generate.Options{Seed: 1, Now: now, Total: o.Events})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{opts: o, db: db}
	if b.rows, err = encodeRows(g, o.Events, partitions); err != nil {
		t.Fatal(err)
	}
	runs, err := b.floor(ctx)
	if err != nil || len(runs) != 3 {
		t.Fatalf("%v %v", runs, err)
	}
	counts, err := db.Counts(ctx)
	if err != nil || counts.Events != int64(o.Events) || counts.Identities != int64(o.Events) {
		t.Errorf("%+v %v", counts, err)
	}
	rows := map[int32]int{}
	err = db.Origins(ctx, [16]byte{1}, []pg.Range{{Partition: 3, From: 0, Until: 1000}}, func(partition int32, _ int64) error {
		rows[partition]++
		return nil
	})
	if err != nil || len(rows) != 1 || rows[3] != 1000 {
		t.Errorf("%v %v", rows, err)
	}
}
