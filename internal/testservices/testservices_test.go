package testservices

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"appliance/internal/embedded/postmaster"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func query(t *testing.T, url, statement string) string {
	t.Helper()
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var answer string
	if err := conn.QueryRow(ctx, statement).Scan(&answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func execute(t *testing.T, url, statement string) {
	t.Helper()
	administer(t, url, statement)
}

func TestEachDatabaseIsFreshAndGoesWithItsTest(t *testing.T) {
	var name string
	t.Run("use", func(t *testing.T) {
		url := Postgres(t)
		name = query(t, url, "SELECT current_database()")
		if n := query(t, url, "SELECT count(*)::text FROM pg_stat_user_tables"); n != "0" {
			t.Errorf("a fresh database has %s tables", n)
		}
		if super := query(t, url, "SELECT current_setting('is_superuser')"); super != "on" {
			t.Error("its user is no superuser")
		}
	})
	left := query(t, Postgres(t), "SELECT count(*)::text FROM pg_database WHERE datname = '"+name+"'")
	if left != "0" {
		t.Errorf("database %s outlived its test", name)
	}
}

func TestATopicHasWhatWasAskedAndGoesWithItsTest(t *testing.T) {
	bootstrap := Kafka(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(bootstrap, ",")...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	var name string
	t.Run("use", func(t *testing.T) {
		name = Topic(t, bootstrap, 3, map[string]string{"retention.ms": "60000"})
		topics, err := admin.ListTopics(t.Context(), name)
		if err != nil || len(topics[name].Partitions) != 3 {
			t.Errorf("topic has %d partitions (%v), want 3", len(topics[name].Partitions), err)
		}
		configs, err := admin.DescribeTopicConfigs(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range configs[0].Configs {
			if c.Key == "retention.ms" && *c.Value != "60000" {
				t.Errorf("retention.ms = %s, want 60000", *c.Value)
			}
		}
	})
	// A broker's view of the topics follows the controller's by moments.
	for ctx, cancel := context.WithTimeout(t.Context(), patience); ; {
		defer cancel()
		topics, err := admin.ListTopics(ctx, name)
		if err != nil {
			t.Fatalf("topic %s outlived its test: %v", name, err)
		}
		if errors.Is(topics[name].Err, kerr.UnknownTopicOrPartition) {
			return
		}
	}
}

func TestACrashedPostgresComesBackWithItsRowsOnItsPort(t *testing.T) {
	p := StartPostgres(t)
	execute(t, p.URL, "CREATE TABLE kept AS SELECT 42 AS n")
	p.Stop(true)
	p.Start()
	if n := query(t, p.URL, "SELECT n::text FROM kept"); n != "42" {
		t.Errorf("kept = %s, want 42", n)
	}
}

func TestAKilledKafkaComesBackWithItsRecordsOnItsPorts(t *testing.T) {
	k := StartKafka(t, KafkaOptions{Settings: []string{"log.retention.hours=1"}})
	address := k.BootstrapServers
	topic := Topic(t, address, 1, nil)
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.DefaultProduceTopic(topic), kgo.ConsumeTopics(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(t.Context(), kgo.StringRecord("kept")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	k.Kill()
	k.Start()
	if k.BootstrapServers != address {
		t.Errorf("came back at %s, was at %s", k.BootstrapServers, address)
	}
	records := client.PollFetches(t.Context()).Records()
	if len(records) != 1 || string(records[0].Value) != "kept" {
		t.Errorf("records after the kill: %v", records)
	}
}

func TestTheOldestAndTheNewestPostgresStart(t *testing.T) {
	for _, major := range []int{postmaster.OldestMajor, postmaster.NewestMajor} {
		p := StartPostgresVersion(t, major, "max_connections=20")
		version := query(t, p.URL, "SELECT current_setting('server_version') || ' ' || current_setting('max_connections')")
		if !strings.HasPrefix(version, strconv.Itoa(major)) || !strings.HasSuffix(version, " 20") {
			t.Errorf("asked for %d with 20 connections, runs %s", major, version)
		}
	}
}
