package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"appliance/internal/bench"
)

func newBenchCmd(e *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "bench", Short: "Measure against a floor",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchPersistCmd(e))
	return cmd
}

// benchFlags are the flags of bench persist.
type benchFlags struct {
	events, rounds int
	seed           uint64
	asJSON         bool
}

func newBenchPersistCmd(e *environment) *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use: "persist", Short: "Measure Kafka to PostgreSQL with the shipped pipelines",
		Long: "Puts events onto a topic of its own, then in turns copies the same rows straight into the table (the floor: the\n" +
			"best of COPY, 5,000 rows a transaction, over 1, 2 and 4 connections) and runs `appliance run` as a child until\n" +
			"it has stored them all. It uses the broker and the database server of the environment (KAFKA_BOOTSTRAP_SERVERS,\n" +
			"DATABASE_URL), in topics and a database of its own that it removes again: the user has to be allowed to create\n" +
			"a database.\n\n" +
			"seconds and events_per_second run from the start of the child to its last row; …_from_first_row leave the start\n" +
			"out. Rows, lost and duplicates are counted by SQL; each figure is the median of the rounds.",
		Example: "  appliance bench persist --events 300000 --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.events < 1 || f.rounds < 1 {
				return refused(errors.New("--events and --rounds are at least 1"))
			}
			return f.run(cmd.Context(), e)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&f.events, "events", 300_000, "how many events")
	flags.IntVar(&f.rounds, "rounds", 2, "how often floor and program take turns")
	flags.Uint64Var(&f.seed, "seed", 1, "number that the events are derived from")
	jsonFlag(cmd, &f.asJSON)
	return cmd
}

func (f *benchFlags) run(ctx context.Context, e *environment) error {
	o, err := f.options(ctx, e)
	if err != nil {
		return err
	}
	bars := &stages{e: e}
	o.Progress = bars.set
	result, err := bench.Run(ctx, o)
	bars.done()
	if err != nil {
		return err
	}
	if f.asJSON {
		err = printJSON(e.stdout, result)
	} else {
		err = printBench(e.stdout, result)
	}
	if err == nil && result.Lost+result.Duplicates != 0 {
		err = fmt.Errorf("bench: %d events lost, %d doubled", result.Lost, result.Duplicates)
	}
	return err
}

// options takes the addresses from the shipped configuration, since it is what the child runs on.
func (f *benchFlags) options(ctx context.Context, e *environment) (bench.Options, error) {
	s, err := loadServices(e, "")
	if err != nil {
		return bench.Options{}, err
	}
	ledgers := s.ledgers("")
	if len(ledgers) == 0 {
		return bench.Options{}, refused(errors.New("the shipped configuration has no pipeline into a ledger"))
	}
	cluster, err := s.cluster(ledgers[0].Cluster)
	if err != nil {
		return bench.Options{}, refused(err)
	}
	database, err := s.database(ledgers[0].Database)
	if err != nil {
		return bench.Options{}, refused(err)
	}
	admin, err := openAdmin(ctx, cluster)
	if err != nil {
		return bench.Options{}, err
	}
	admin.Close()
	db, err := openDatabase(ctx, ledgers[0].Database, database)
	if err != nil {
		return bench.Options{}, err
	}
	db.Close()
	program, err := os.Executable()
	if err != nil {
		return bench.Options{}, fmt.Errorf("find this program: %w", err)
	}
	return bench.Options{
		Events: f.events, Rounds: f.rounds, Seed: f.seed, Name: "appliance_bench_" + strings.ToLower(rand.Text()[:10]),
		Program: []string{program, "run"}, Environ: os.Environ(), Settings: map[string]string{"ADMIN_AUTH_SECRET": rand.Text() + rand.Text()},
		Cluster: cluster, Database: database, Load: loadAverage(), Now: e.now,
	}, nil
}

// loadAverage is that of the last minute, 0 where there is no /proc.
func loadAverage() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	word, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(word, 64)
	if err != nil {
		return 0
	}
	return load
}

func printBench(to io.Writer, r bench.Result) error {
	_, err := fmt.Fprintf(to, `%d events, %s, load average %.1f
floor      %8.0f rows/s
appliance  %8.0f rows/s (%.2f of the floor) in %.1f s from the start of the process
           %8.0f rows/s (%.2f of the floor) from the first row, %.1f s after the start
lost %d, duplicates %d, peak memory %.0f MiB
`, r.Events, r.Broker, r.LoadAverage, r.FloorEventsPerSecond, r.EventsPerSecond, r.Ratio, r.Seconds,
		r.EventsPerSecondFromFirst, r.RatioFromFirst, r.StartupSeconds, r.Lost, r.Duplicates, float64(r.PeakRSSBytes)/(1<<20))
	return err
}
