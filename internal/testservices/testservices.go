// Package testservices gives tests the real services they need: an Apache
// Kafka and a PostgreSQL, never a stand-in. A service comes from, in this
// order: its address in the environment (APPLIANCE_TEST_KAFKA, bootstrap
// servers; APPLIANCE_TEST_POSTGRES, URL of a superuser's database), a local
// start, a container. If none works the test fails and says what was tried; it
// is never skipped.
//
// Package with is the command that starts both once for a whole `go test
// ./...`; without it each test process starts its own, which ends with it.
package testservices

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The environment variables that name running services.
const (
	KafkaVariable    = "APPLIANCE_TEST_KAFKA"
	PostgresVariable = "APPLIANCE_TEST_POSTGRES"
)

// patience is for one administrative call to a service that is up.
const patience = 30 * time.Second

// Kafka returns the bootstrap servers, comma-separated, of a Kafka that other
// tests use too: take topics and groups of your own.
func Kafka(t testing.TB) string {
	t.Helper()
	return shared(t, "kafka", KafkaVariable)
}

// Postgres returns the URL of a fresh, empty database that is dropped when the
// test ends. Its user is a superuser.
func Postgres(t testing.TB) string {
	t.Helper()
	return freshDatabase(t, shared(t, "postgres", PostgresVariable))
}

// shared is the service's address in the environment, else that of the one
// this process holds.
func shared(t testing.TB, service, variable string) string {
	t.Helper()
	if address := os.Getenv(variable); address != "" {
		return address
	}
	address, err := own.address(service, variable)
	if err != nil {
		t.Fatalf("%s is not set and no %s could be started: %v", variable, service, err)
	}
	return address
}

// freshDatabase creates a database on the server of the superuser's URL.
func freshDatabase(t testing.TB, superuser string) string {
	t.Helper()
	name := unique("test_")
	administer(t, superuser, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	t.Cleanup(func() {
		administer(t, superuser, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
	})
	u, err := url.Parse(superuser)
	if err != nil {
		t.Fatalf("parse %s: %v", PostgresVariable, err)
	}
	u.Path = "/" + name
	return u.String()
}

func administer(t testing.TB, superuser, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, superuser)
	if err != nil {
		t.Fatalf("connect to postgres of %s: %v", PostgresVariable, err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// Topic creates a topic with a name of its own, which it returns, and deletes
// it when the test ends. Replication is the cluster's default; configs may be
// nil, its keys are Kafka's topic settings.
func Topic(t testing.TB, bootstrap string, partitions int32, configs map[string]string) string {
	t.Helper()
	name := unique("test.")
	settings := make(map[string]*string, len(configs))
	for k, v := range configs {
		settings[k] = &v
	}
	err := withAdmin(bootstrap, patience, func(ctx context.Context, admin *kadm.Client) error {
		_, err := admin.CreateTopic(ctx, partitions, -1, settings, name)
		return err
	})
	if err != nil {
		t.Fatalf("create topic %s at %s: %v", name, bootstrap, err)
	}
	t.Cleanup(func() {
		// A test that killed the broker or deleted the topic itself has not failed.
		err := withAdmin(bootstrap, patience/6, func(ctx context.Context, admin *kadm.Client) error {
			_, err := admin.DeleteTopic(ctx, name)
			return err
		})
		if err != nil {
			t.Logf("delete topic %s at %s: %v", name, bootstrap, err)
		}
	})
	return name
}

func withAdmin(bootstrap string, within time.Duration, do func(context.Context, *kadm.Client) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(bootstrap, ",")...))
	if err != nil {
		return err
	}
	defer client.Close()
	return do(ctx, kadm.NewClient(client))
}

// unique is a name no other test has, in lower case.
func unique(prefix string) string {
	return prefix + strings.ToLower(rand.Text())
}
