package testservices

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// KafkaOptions says what cluster to start. The zero value is one broker.
type KafkaOptions struct {
	Nodes    int      // 1 to 5; with 3 or more: replication 3, min.insync.replicas 2
	Settings []string // "key=value" lines for server.properties
}

// KafkaServer is a Kafka cluster of a test's own, which may kill it. It ends
// with the test, at the latest with the test process.
type KafkaServer struct {
	BootstrapServers string // comma-separated; the same after every Start
	t                testing.TB
	script           string
	dir              string
	options          KafkaOptions
}

// kafkaPatience is for a start of the broker: 5 to 14 seconds on two free
// cores, and a fetch of its jars before the first one.
const kafkaPatience = 5 * time.Minute

// StartKafka starts a cluster with ports and a data directory of its own.
func StartKafka(t testing.TB, options KafkaOptions) *KafkaServer {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	k := &KafkaServer{t: t, script: filepath.Join(root, "tools", "kafka"), dir: t.TempDir(), options: options}
	if err := k.endWithUs(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Kill() })
	k.Start()
	return k
}

// Start starts the nodes that are down and returns when all are in service.
func (k *KafkaServer) Start() {
	k.t.Helper()
	args := []string{"--nodes", strconv.Itoa(max(1, k.options.Nodes))}
	for _, s := range k.options.Settings {
		args = append(args, "--set", s)
	}
	out := k.run("start", args...)
	address, ok := strings.CutPrefix(strings.TrimSpace(out), "KAFKA_BOOTSTRAP_SERVERS=")
	if !ok {
		k.t.Fatalf("start kafka: it printed %q", out)
	}
	k.BootstrapServers = address
}

// Kill ends nodes (numbered from 1; none named: all) with SIGKILL, and waits
// until they are gone.
func (k *KafkaServer) Kill(nodes ...int) { k.t.Helper(); k.end("kill", nodes) }

// Stop ends nodes (numbered from 1; none named: all) in order.
func (k *KafkaServer) Stop(nodes ...int) { k.t.Helper(); k.end("stop", nodes) }

func (k *KafkaServer) end(how string, nodes []int) {
	k.t.Helper()
	if len(nodes) == 0 {
		k.run(how)
	}
	for _, n := range nodes {
		k.run(how, "--node", strconv.Itoa(n))
	}
}

func (k *KafkaServer) run(verb string, args ...string) string {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), kafkaPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, k.script, append([]string{verb, "--dir", k.dir}, args...)...)
	var trouble strings.Builder
	cmd.Stderr = &trouble
	out, err := cmd.Output()
	if err != nil {
		k.t.Fatalf("%s kafka: %v: %s", verb, err, trouble.String())
	}
	return string(out)
}

// endWithUs leaves a shell that waits for the end of its standard input, whose
// other end we hold: it kills the brokers also when a timeout or a signal ends
// this process without any clean-up.
func (k *KafkaServer) endWithUs() error {
	cmd := exec.Command("setsid", "bash", "-c", `cat >/dev/null; "$0" kill --dir "$1"; rm -rf "$1"`, k.script, k.dir)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("watch kafka: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("watch kafka: %w", err)
	}
	k.t.Cleanup(func() {
		stdin.Close()
		cmd.Wait() //nolint:errcheck // the brokers are gone already
	})
	return nil
}
