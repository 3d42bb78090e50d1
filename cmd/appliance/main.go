// Command appliance runs event pipelines that are declared in HCL: one binary from HTTP through Kafka into databases.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"
)

func main() { os.Exit(mainCode()) }

// mainCode is main without the exit, so that a test can be the binary.
func mainCode() int {
	e := &environment{
		program: os.Args[0],
		stdin:   os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		getenv: os.LookupEnv, now: time.Now, isTerminal: term.IsTerminal(int(os.Stderr.Fd())),
	}
	ctx, stop := untilSignalled(e)
	defer stop()
	err := newRootCmd(e).ExecuteContext(ctx)
	if text := errorText(err); text != "" {
		fmt.Fprintln(e.stderr, "Error:", text)
	}
	return exitCode(err)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// untilSignalled returns a context that ends with the first SIGINT or SIGTERM. A second one changes nothing but says so:
// skipping the drain is a decision that SIGKILL makes.
func untilSignalled(e *environment) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case s := <-signals:
				if ctx.Err() != nil {
					fmt.Fprintf(e.stderr, "appliance: %v again: still draining, nothing is skipped; SIGKILL ends it at once, and what is not committed is read again\n", s)
				}
				cancel()
			}
		}
	}()
	return ctx, func() { signal.Stop(signals); close(done); cancel() }
}
