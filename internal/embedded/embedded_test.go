package embedded

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"appliance/internal/embedded/postmaster"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
)

// helperVariable makes this binary a process that holds the services of the
// folder it names, until its standard input ends or it is killed.
const helperVariable = "EMBEDDED_TEST_FOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperVariable); dir != "" {
		os.Exit(hold(dir))
	}
	goleak.VerifyTestMain(m)
}

// held is what a helper prints.
type held struct {
	Kafka, Postgres string
	PID             int // PostgreSQL's
}

func hold(dir string) int {
	s, err := Start(context.Background(), options(dir, os.Stderr))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	json.NewEncoder(os.Stdout).Encode(held{s.KafkaBootstrap, s.PostgresURL, s.postgres.server.PID()})
	io.Copy(io.Discard, os.Stdin)
	if err := s.Close(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func options(dir string, out io.Writer) Options {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return Options{Dir: dir, Path: os.Getenv("PATH"), UserCache: cache, Out: out, Log: slog.New(slog.DiscardHandler)}
}

// open is a folder that every account can enter, unlike a test's own.
func open(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "embedded-test-") //nolint:usetesting // the test's own folder is closed to the account
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func start(t *testing.T, dir string) *Services {
	t.Helper()
	begin := time.Now()
	s, err := Start(t.Context(), options(dir, t.Output()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	t.Logf("ready after %v", time.Since(begin).Round(time.Millisecond))
	return s
}

// process is a helper under test.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	said  *strings.Builder
	held
}

// launch starts a helper, as another account if one is given.
func launch(t *testing.T, dir string, credential *syscall.Credential) (*process, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if credential != nil {
		self = reachable(t, self)
	}
	p := &process{cmd: exec.Command(self), said: &strings.Builder{}}
	p.cmd.Dir = "/"
	p.cmd.Env = append(os.Environ(), helperVariable+"="+dir, "HOME="+dir, "GOCOVERDIR=")
	p.cmd.Stderr = p.said
	if credential != nil {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		p.cmd.Wait()
		return nil, errors.New(strings.TrimSpace(p.said.String()))
	}
	if err := json.Unmarshal(line, &p.held); err != nil {
		t.Fatal(err)
	}
	return p, nil
}

// reachable copies the binary out of the folder that only we can enter.
func reachable(t *testing.T, binary string) string {
	t.Helper()
	text, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(open(t), "helper")
	if err := os.WriteFile(to, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return to
}

func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.cmd.Wait()
}

func (p *process) end(t *testing.T) {
	t.Helper()
	p.stdin.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("end: %v: %s", err, p.said)
	}
}

const topic = "kept"

// fill creates a topic with one record and a table with one row.
func fill(t *testing.T, kafka, postgres string) {
	t.Helper()
	withKafka(t, kafka, func(client *kgo.Client) {
		if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 3, 1, nil, topic); err != nil {
			t.Fatal(err)
		}
		if err := client.ProduceSync(t.Context(), kgo.StringRecord("a record")).FirstErr(); err != nil {
			t.Fatal(err)
		}
	})
	withPostgres(t, postgres, func(conn *pgx.Conn) {
		if _, err := conn.Exec(t.Context(), "CREATE TABLE kept AS SELECT 'a row' AS text"); err != nil {
			t.Fatal(err)
		}
	})
}

// find fails unless what fill left is there.
func find(t *testing.T, kafka, postgres string) {
	t.Helper()
	withKafka(t, kafka, func(client *kgo.Client) {
		records := client.PollFetches(t.Context()).Records()
		if len(records) != 1 || string(records[0].Value) != "a record" {
			t.Errorf("records: %v, want the one produced", records)
		}
	})
	withPostgres(t, postgres, func(conn *pgx.Conn) {
		var text string
		if err := conn.QueryRow(t.Context(), "SELECT text FROM kept").Scan(&text); err != nil || text != "a row" {
			t.Errorf("row: %q %v, want the one inserted", text, err)
		}
	})
}

func withKafka(t *testing.T, kafka string, do func(*kgo.Client)) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(kafka), kgo.DefaultProduceTopic(topic), kgo.ConsumeTopics(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	do(client)
}

func withPostgres(t *testing.T, url string, do func(*pgx.Conn)) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	do(conn)
}

func TestASecondStartFindsRecordsRowsSecretsAndPorts(t *testing.T) {
	dir := filepath.Join(open(t), "data")
	first := start(t, dir)
	fill(t, first.KafkaBootstrap, first.PostgresURL)
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := start(t, dir)
	find(t, second.KafkaBootstrap, second.PostgresURL)
	if second.KafkaBootstrap != first.KafkaBootstrap || second.PostgresURL != first.PostgresURL || second.Secrets != first.Secrets {
		t.Errorf("second start: %s %s, first: %s %s, or other secrets", second.KafkaBootstrap, second.PostgresURL, first.KafkaBootstrap, first.PostgresURL)
	}
}

func TestWhatAKilledProcessAcknowledgedIsFound(t *testing.T) {
	dir := filepath.Join(open(t), "data")
	p, err := launch(t, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, p.Kafka, p.Postgres)
	p.kill(t)
	s := start(t, dir)
	find(t, s.KafkaBootstrap, s.PostgresURL)
}

func TestPostgresEndsWithAKilledProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // only there does the kernel do it; elsewhere the next start does
	}
	p, err := launch(t, filepath.Join(open(t), "data"), nil)
	if err != nil {
		t.Fatal(err)
	}
	p.kill(t)
	for deadline := time.Now().Add(20 * time.Second); syscall.Kill(p.PID, 0) == nil; {
		if time.Now().After(deadline) {
			t.Fatalf("postgres %d runs on", p.PID)
		}
		runtime.Gosched()
	}
}

func TestASecondProcessOnTheFolderIsRefusedByTheNumberOfTheFirst(t *testing.T) {
	dir := filepath.Join(open(t), "data")
	start(t, dir)
	_, err := Start(t.Context(), options(dir, t.Output()))
	var locked *LockedError
	if !errors.Is(err, ErrLocked) || !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Fatalf("second start in this process: %v", err)
	}
	_, err = launch(t, dir, nil)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("is in use by process %d", os.Getpid())) {
		t.Fatalf("second process: %v", err)
	}
}

func TestAServerThatLostItsParentIsEndedAndItsDataServed(t *testing.T) {
	dir := filepath.Join(open(t), "data")
	first := start(t, dir)
	fill(t, first.KafkaBootstrap, first.PostgresURL)
	orphan := first.postgres.server
	// The kernel's part is left out: the folder is given up, the server is not.
	first.kafka.close()
	first.postgres = nil
	first.kafka = nil
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := start(t, dir)
	<-orphan.Ended()
	find(t, second.KafkaBootstrap, second.PostgresURL)
}

func TestAFolderThatThePostgresAccountCannotEnterKeepsItsDataElsewhere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data") // 0700 above
	first := start(t, dir)
	home := first.folder.postgresHome()
	if os.Geteuid() == 0 {
		t.Cleanup(func() { os.RemoveAll(home) })
		if strings.HasPrefix(home, dir) {
			t.Fatalf("root's data are in %s", home)
		}
	} else if home != filepath.Join(dir, "postgres") {
		t.Fatalf("a user's data are in %s", home)
	}
	fill(t, first.KafkaBootstrap, first.PostgresURL)
	first.Close(t.Context())
	second := start(t, dir)
	find(t, second.KafkaBootstrap, second.PostgresURL)
	second.Close(t.Context())

	// A new folder of the same name is empty, also where the old one's data were.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	third := start(t, dir)
	fill(t, third.KafkaBootstrap, third.PostgresURL)
}

// As root this drops to an account of its own; otherwise the tests above ran
// as a user already, and this one repeats them in another process.
func TestAUserWithoutPrivilegesStartsAndFindsTheSameData(t *testing.T) {
	home := open(t)
	var credential *syscall.Credential
	if os.Geteuid() == 0 {
		account, err := postmaster.Unprivileged(0)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(home, int(account.UID), int(account.GID)); err != nil {
			t.Fatal(err)
		}
		credential = &syscall.Credential{Uid: account.UID, Gid: account.GID}
	}
	dir := filepath.Join(home, "data")
	first, err := launch(t, dir, credential)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, first.Kafka, first.Postgres)
	first.kill(t)
	second, err := launch(t, dir, credential)
	if err != nil {
		t.Fatal(err)
	}
	find(t, second.Kafka, second.Postgres)
	second.end(t)
	third := start(t, dir) // root on a user's folder
	find(t, third.KafkaBootstrap, third.PostgresURL)
}

func TestATakenPortIsReplacedAndRemembered(t *testing.T) {
	dir := filepath.Join(open(t), "data")
	first := start(t, dir)
	first.Close(t.Context())
	taken := occupy(t, first.KafkaBootstrap)
	defer taken.Close()
	second := start(t, dir)
	if second.KafkaBootstrap == first.KafkaBootstrap {
		t.Fatal("the taken port was used")
	}
	if second.folder.remembered().KafkaPort != second.kafka.port {
		t.Error("the new port is not remembered")
	}
}

func TestNobodyElseReadsTheFolder(t *testing.T) {
	dir := filepath.Join(open(t), "data")
	start(t, dir)
	for _, name := range []string{"secrets.env", "services.json", "lock", "postgres.log", "postgres", "kafka"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}

func TestAnEndOfPostgresIsSeen(t *testing.T) {
	s := start(t, filepath.Join(open(t), "data"))
	if err := syscall.Kill(s.postgres.server.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.PostgresEnded()
}
