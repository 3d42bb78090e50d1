package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"appliance/internal/embedded/postmaster"
	"appliance/internal/testservices"
)

// localKafka starts one broker with the repository's script in a temporary
// folder. A watcher in a session of its own ends it when we die without
// stopping it.
func localKafka(ctx context.Context, log io.Writer) (running, error) {
	root, err := testservices.Root()
	if err != nil {
		return running{}, err
	}
	dir, err := os.MkdirTemp("", "appliance-test-kafka-")
	if err != nil {
		return running{}, fmt.Errorf("start kafka: %w", err)
	}
	script := filepath.Join(root, "tools", "kafka")
	release, err := watch(script, dir)
	if err != nil {
		return running{}, errors.Join(err, os.Remove(dir))
	}
	cmd := exec.CommandContext(ctx, script, "start", "--dir", dir)
	cmd.Env = append(os.Environ(), "KAFKA_HEAP_OPTS=-Xmx768m")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is ours to handle
	var trouble bytes.Buffer
	cmd.Stderr = io.MultiWriter(&trouble, log)
	out, err := cmd.Output()
	address, ok := strings.CutPrefix(strings.TrimSpace(string(out)), "KAFKA_BOOTSTRAP_SERVERS=")
	if err != nil || !ok {
		release() //nolint:errcheck // the start's error is the one to tell
		return running{}, fmt.Errorf("start kafka: %w: %s", err, bytes.TrimSpace(trouble.Bytes()))
	}
	return running{address, "Apache Kafka, started at " + address, func(context.Context) error { return release() }}, nil
}

// watch leaves a shell that waits for its standard input to end, then kills
// the broker of dir and removes it. release ends the input and waits for that.
func watch(script, dir string) (release func() error, err error) {
	cmd := exec.Command("bash", "-c", `cat >/dev/null; "$0" kill --dir "$1"; rm -rf "$1"`, script, dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("watch kafka: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("watch kafka: %w", err)
	}
	return func() error {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("stop kafka: %w", err)
		}
		return nil
	}, nil
}

// flushing is a server that keeps what it committed through a loss of power,
// as one in production does; the other is for tests, which throw it away.
func flushing(durable bool) []string {
	if durable {
		return nil
	}
	return []string{"fsync=off", "full_page_writes=off"}
}

// localPostgres starts a server with binaries of this machine, or else fetched
// ones.
func localPostgres(ctx context.Context, durable bool, log io.Writer) (running, error) {
	cluster, err := testservices.NewCluster(ctx, 0, flushing(durable), log)
	if err != nil {
		return running{}, err
	}
	home := filepath.Dir(cluster.DataDir)
	server, err := cluster.Start(ctx)
	if err != nil {
		os.RemoveAll(home)
		return running{}, err
	}
	stop := func(ctx context.Context) error {
		defer os.RemoveAll(home)
		return server.Stop(ctx, postmaster.Immediate)
	}
	kind := fmt.Sprintf("PostgreSQL %d, started at 127.0.0.1:%d", cluster.Binaries.Major, cluster.Port)
	return running{cluster.URL(), kind, stop}, nil
}
