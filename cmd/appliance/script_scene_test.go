package main

import (
	"context"
	"crypto/rand"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"appliance/internal/testservices"
)

type sceneKey struct{}

// scene is what one script has: its services, and the processes that it started.
type scene struct {
	t        testing.TB
	binary   string
	children map[string]*child
	code     int // of the last appliance in the foreground

	kafka    *testservices.KafkaServer    // of its own, or nil
	postgres *testservices.PostgresServer // of its own, or nil
	client   *kgo.Client
}

// secretOfScripts signs the tokens of every script.
const secretOfScripts = "a secret of at least 32 characters, for tests only" //nolint:gosec // it guards nothing

// services: services [-own-kafka] [-own-database] [-partitions N] [-no-topics].
func (s *scene) services(ts *testscript.TestScript, neg bool, args []string) {
	own, partitions, topics := map[string]bool{}, int32(3), true
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-own-kafka", "-own-database":
			own[args[i]] = true
		case "-no-topics":
			topics = false
		case "-partitions":
			i++
			partitions = int32(number(ts, args[i]))
		default:
			ts.Fatalf("unknown argument %q", args[i])
		}
	}
	refuseNeg(ts, neg)
	ts.Setenv("DATABASE_URL", s.databaseURL(own["-own-database"]))
	bootstrap := s.bootstrap(own["-own-kafka"])
	ts.Setenv("KAFKA_BOOTSTRAP_SERVERS", bootstrap)
	name := "script." + strings.ToLower(rand.Text())
	s.connect(ts, bootstrap)
	s.forgetLater(name)
	for k, v := range map[string]string{
		"KAFKA_TOPIC": name, "KAFKA_DLQ_TOPIC": name + ".dlq", "KAFKA_GROUP_ID": name, "KAFKA_DLQ_GROUP_ID": name + ".index",
		"HTTP_HOST": "127.0.0.1", "HTTP_PORT": "0", "ADMIN_AUTH_SECRET": secretOfScripts, "SHUTDOWN_DRAIN_DELAY": "0s",
		"LAG_REFRESH_INTERVAL": "200 millis", "LAG_REQUEST_TIMEOUT": "2 seconds",
		"NOW": time.Now().UTC().Add(-time.Minute).Format(time.RFC3339), "LATER": time.Now().UTC().Format(time.RFC3339),
	} {
		ts.Setenv(k, v)
	}
	if topics {
		s.createTopic(ts, name, partitions)
		s.createTopic(ts, name+".dlq", 1)
	}
}

func (s *scene) databaseURL(own bool) string {
	if !own {
		return testservices.Postgres(s.t)
	}
	s.postgres = testservices.StartPostgres(s.t)
	return s.postgres.URL
}

func (s *scene) bootstrap(own bool) string {
	if !own {
		return testservices.Kafka(s.t)
	}
	s.kafka = testservices.StartKafka(s.t, testservices.KafkaOptions{})
	return s.kafka.BootstrapServers
}

func (s *scene) connect(ts *testscript.TestScript, bootstrap string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytes(1<<20), kgo.DialTimeout(5*time.Second))
	ts.Check(err)
	s.t.Cleanup(client.Close)
	s.client = client
}

// forgetLater removes the script's topics and groups from a broker that others use too.
func (s *scene) forgetLater(name string) {
	if s.kafka != nil {
		return
	}
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		admin := kadm.NewClient(s.client)
		if _, err := admin.DeleteTopics(ctx, name, name+".dlq"); err != nil {
			s.t.Logf("delete topics of %s: %v", name, err)
		}
		if _, err := admin.DeleteGroups(ctx, name, name+".index"); err != nil {
			s.t.Logf("delete groups of %s: %v", name, err)
		}
	})
}

// end is called when the script is over, however it ended: it leaves no process behind.
func (s *scene) end() {
	for _, c := range s.children {
		c.kill()
		if s.t.Failed() {
			s.t.Logf("the log of %s ends:\n%s", c.name, tail(c.log, 40))
		}
	}
}

// envsubst: envsubst FILE...
func (s *scene) envsubst(ts *testscript.TestScript, neg bool, args []string) {
	refuseNeg(ts, neg)
	for _, file := range args {
		text := os.Expand(ts.ReadFile(file), ts.Getenv)
		ts.Check(os.WriteFile(ts.MkAbs(file), []byte(text), 0o600))
	}
}

func refuseNeg(ts *testscript.TestScript, neg bool) {
	if neg {
		ts.Fatalf("this word takes no !")
	}
}

func number(ts *testscript.TestScript, text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	ts.Check(err)
	return n
}

func tail(file string, lines int) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
