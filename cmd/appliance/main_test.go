package main

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"appliance/internal/testservices"
)

// runProgram makes this test binary behave as the program, for verbs that start themselves as a child.
const runProgram = "APPLIANCE_TEST_RUN_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(runProgram) != "" {
		os.Exit(mainCode())
	}
	os.Exit(m.Run())
}

// bundle is the program's world in a test: real services, and what a call of it wrote.
type bundle struct {
	t       testing.TB
	vars    map[string]string
	in      string
	out     bytes.Buffer
	err     bytes.Buffer
	visible bool // stderr is a terminal
}

// setup gives the shipped configuration services of its own.
func setup(t testing.TB) *bundle {
	t.Helper()
	b := offline(t)
	bootstrap := testservices.Kafka(t)
	b.vars["KAFKA_BOOTSTRAP_SERVERS"] = bootstrap
	b.vars["KAFKA_TOPIC"] = testservices.Topic(t, bootstrap, 2, nil)
	b.vars["KAFKA_DLQ_TOPIC"] = testservices.Topic(t, bootstrap, 1, nil)
	b.vars["KAFKA_GROUP_ID"] = b.vars["KAFKA_TOPIC"]
	b.vars["DATABASE_URL"] = testservices.Postgres(t)
	return b
}

// offline reaches nothing.
func offline(t testing.TB) *bundle {
	t.Helper()
	return &bundle{t: t, vars: map[string]string{
		"KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
		"DATABASE_URL":            "postgres://nobody@127.0.0.1:1/nothing?sslmode=disable",
	}}
}

// call runs the program with arguments and returns its exit code; out and err hold what it wrote.
func (b *bundle) call(args ...string) int {
	b.t.Helper()
	b.out.Reset()
	b.err.Reset()
	e := &environment{
		stdin: strings.NewReader(b.in), stdout: &b.out, stderr: &b.err, now: time.Now, isTerminal: b.visible,
		getenv: func(name string) (string, bool) { v, ok := b.vars[name]; return v, ok },
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	root := newRootCmd(e)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	b.err.WriteString(errorText(err))
	return exitCode(err)
}

// must runs the program and expects the exit code.
func (b *bundle) must(code int, args ...string) {
	b.t.Helper()
	if got := b.call(args...); got != code {
		b.t.Fatalf("appliance %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code, b.out.String(), b.err.String())
	}
}

func (b *bundle) says(out *bytes.Buffer, text string) {
	b.t.Helper()
	if !strings.Contains(out.String(), text) {
		b.t.Errorf("%q is not in\n%s", text, out.String())
	}
}

func (b *bundle) admin() *kadm.Client {
	b.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(b.vars["KAFKA_BOOTSTRAP_SERVERS"], ",")...))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(client.Close)
	return kadm.NewClient(client)
}

func (b *bundle) removeTopic(name string) {
	b.t.Helper()
	if _, err := b.admin().DeleteTopic(b.t.Context(), name); err != nil {
		b.t.Error(err)
	}
}

// leftovers are the topics, groups and databases that a prefix names.
func (b *bundle) leftovers(prefix string) []string {
	b.t.Helper()
	admin := b.admin()
	topics, err := admin.ListTopics(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	groups, err := admin.ListGroups(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	conn, err := pgx.Connect(b.t.Context(), b.vars["DATABASE_URL"])
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close(b.t.Context())
	rows, err := conn.Query(b.t.Context(), "SELECT datname FROM pg_database")
	if err != nil {
		b.t.Fatal(err)
	}
	databases, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		b.t.Fatal(err)
	}
	all := slices.Concat(topics.Names(), groups.Groups(), databases)
	return slices.DeleteFunc(all, func(name string) bool { return !strings.HasPrefix(name, prefix) })
}
