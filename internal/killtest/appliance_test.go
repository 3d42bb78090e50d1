package killtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const secret = "a secret of at least 32 characters, for tests only"

// binary builds the appliance once, unless APPLIANCE_BIN names one.
var binary = sync.OnceValues(func() (string, error) {
	if name := os.Getenv("APPLIANCE_BIN"); name != "" {
		return name, nil
	}
	dir, err := os.MkdirTemp("", "appliance-killtest")
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "appliance")
	out, err := exec.Command("go", "build", "-o", name, "appliance/cmd/appliance").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return name, nil
})

// setting is one installation: what every replica is told.
type setting struct {
	kafka, postgres          string
	topic, dlq, group, index string
	more                     map[string]string
}

func (s setting) environ(more map[string]string) []string {
	env := os.Environ()
	add := func(k, v string) { env = append(env, k+"="+v) }
	add("KAFKA_BOOTSTRAP_SERVERS", s.kafka)
	add("DATABASE_URL", s.postgres)
	add("KAFKA_TOPIC", s.topic)
	add("KAFKA_DLQ_TOPIC", s.dlq)
	add("KAFKA_GROUP_ID", s.group)
	add("KAFKA_DLQ_GROUP_ID", s.index)
	add("HTTP_HOST", "127.0.0.1")
	add("HTTP_PORT", "0")
	add("ADMIN_AUTH_SECRET", secret)
	add("SHUTDOWN_DRAIN_DELAY", "0s")
	for k, v := range s.more {
		add(k, v)
	}
	for k, v := range more {
		add(k, v)
	}
	return env
}

// appliance is one child process of `appliance run`.
type appliance struct {
	t     *testing.T
	cmd   *exec.Cmd
	ready string
	log   *lines
	ended chan struct{}
}

// start launches the binary on the shipped configuration. It doesn't wait for it to be ready.
func start(t *testing.T, s setting, more map[string]string) *appliance {
	t.Helper()
	name, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	a := &appliance{t: t, ready: filepath.Join(t.TempDir(), "ready.json"), log: &lines{}, ended: make(chan struct{})}
	a.cmd = exec.Command(name, "run", "--ready-file", a.ready)
	a.cmd.Env, a.cmd.Stderr = s.environ(more), a.log
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = a.cmd.Wait(); close(a.ended) }()
	t.Cleanup(a.kill)
	return a
}

// kill ends it as a power cut would.
func (a *appliance) kill() {
	_ = a.cmd.Process.Kill()
	<-a.ended
}

// term asks it to drain and returns its exit code.
func (a *appliance) term() int {
	a.t.Helper()
	_ = a.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-a.ended:
	case <-time.After(60 * time.Second):
		a.t.Error("still running a minute after SIGTERM")
		a.kill()
	}
	return a.cmd.ProcessState.ExitCode()
}

// awaitReady waits for the ready file and returns the admin URL.
func (a *appliance) awaitReady(within time.Duration) string {
	a.t.Helper()
	var addr struct{ Admin string }
	await(a.t, within, "appliance is ready", func() bool {
		select {
		case <-a.ended:
			a.t.Fatalf("ended before it was ready:\n%s", a.log.tail(40))
		default:
		}
		text, err := os.ReadFile(a.ready)
		return err == nil && json.Unmarshal(text, &addr) == nil
	}, a.log)
	return addr.Admin
}

// get returns status and body of an open route.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body.String()
}

// verb runs another verb of the binary on the same installation.
func verb(t *testing.T, s setting, args ...string) (stdout string, code int) {
	t.Helper()
	name, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, args...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = s.environ(nil), &out, &errs
	if err := cmd.Run(); err != nil {
		t.Logf("appliance %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// await polls until ok, since what is waited for happens in other processes.
func await(t *testing.T, within time.Duration, what string, ok func() bool, logs ...*lines) {
	t.Helper()
	for deadline := time.Now().Add(within); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			for _, l := range logs {
				t.Logf("log ends:\n%s", l.tail(30))
			}
			t.Fatalf("%s: not within %s", what, within)
		}
	}
}

// lines keeps the end of a log.
type lines struct {
	mu   sync.Mutex
	text []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if len(l.text) > 1<<20 {
		l.text = l.text[len(l.text)-1<<19:]
	}
	return len(p), nil
}

func (l *lines) tail(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := strings.Split(strings.TrimSpace(string(l.text)), "\n")
	return strings.Join(all[max(0, len(all)-n):], "\n")
}
