// Command with starts the services that the tests need and are not named in
// the environment, runs a command with their addresses in its environment, and
// ends them:
//
//	go run ./internal/testservices/with go test ./...
//	go run ./internal/testservices/with -durable bin/appliance bench persist
//
// With -hold it runs no command: it prints one VARIABLE=ADDRESS line for each
// service and ends them when its standard input closes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"appliance/internal/testservices"
)

// service is one thing tests need: the variable that names it and the ways to
// start it, tried in order.
type service struct {
	name, variable string
	ways           []way
}

type way struct {
	name  string
	start func(ctx context.Context, log io.Writer) (running, error)
}

// running is a started service: its address, how it is described, and its end.
type running struct {
	address, kind string
	stop          func(ctx context.Context) error
}

func catalogue(durable bool) []service {
	return []service{
		{"kafka", testservices.KafkaVariable, []way{
			{"tools/kafka (Java and Maven)", localKafka}, {"a container", containerKafka},
		}},
		{"postgres", testservices.PostgresVariable, []way{
			{"PostgreSQL's binaries", func(ctx context.Context, log io.Writer) (running, error) {
				return localPostgres(ctx, durable, log)
			}}, {"a container", containerPostgres},
		}},
	}
}

// Bounds for starting all, fetches of a first time included, and for ending all.
const (
	startWithin = 10 * time.Minute
	stopWithin  = 30 * time.Second
)

func main() {
	hold := flag.Bool("hold", false, "print addresses and wait for the end of standard input")
	names := flag.String("services", "kafka,postgres", "which services, comma-separated")
	durable := flag.Bool("durable", false, "have PostgreSQL flush to disk what it commits, for measurements")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	code := serve(ctx, catalogue(*durable), strings.Split(*names, ","), *hold, flag.Args())
	stop()
	os.Exit(code)
}

func serve(ctx context.Context, services []service, names []string, hold bool, args []string) int {
	if !hold && len(args) == 0 {
		fmt.Fprintln(os.Stderr, "with: give a command to run, or -hold")
		return 2
	}
	var started []running
	defer func() { stopAll(ctx, started) }()
	var env []string
	for _, s := range services {
		if !slices.Contains(names, s.name) {
			continue
		}
		r, err := obtain(ctx, s)
		if err != nil {
			fmt.Fprintln(os.Stderr, "with:", err)
			return 1
		}
		started = append(started, r)
		env = append(env, s.variable+"="+r.address)
		fmt.Fprintf(os.Stderr, "with: %s: %s\n", s.name, r.kind)
	}
	if hold {
		fmt.Println(strings.Join(env, "\n"))
		holdOn(ctx)
		return 0
	}
	return run(ctx, args, env)
}

// obtain returns the service of the environment, or starts one.
func obtain(ctx context.Context, s service) (running, error) {
	if address := os.Getenv(s.variable); address != "" {
		return running{address, s.variable + " of the environment", func(context.Context) error { return nil }}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	var errs []error
	for _, w := range s.ways {
		r, err := w.start(ctx, os.Stderr)
		if err == nil {
			return r, nil
		}
		errs = append(errs, fmt.Errorf("by %s: %w", w.name, err))
	}
	return running{}, fmt.Errorf("start %s (or set %s to a running one):\n%w", s.name, s.variable, errors.Join(errs...))
}

// stopAll ends in the order opposite to the start, also after a signal.
func stopAll(ctx context.Context, started []running) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	for _, r := range slices.Backward(started) {
		if err := r.stop(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "with:", err)
		}
	}
}

// holdOn returns when standard input closes or a signal came.
func holdOn(ctx context.Context) {
	closed := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // any end is an end
		close(closed)
	}()
	select {
	case <-ctx.Done():
	case <-closed:
	}
}

// run runs the command with env added; a signal to us is passed on, and we
// wait for the command before the services go.
func run(ctx context.Context, args, env []string) int {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopWithin
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	default:
		fmt.Fprintln(os.Stderr, "with:", err)
		return 1
	}
}
