package pipeline_test

import (
	"fmt"
	"maps"
	"reflect"
	"testing"
	"time"

	"appliance/internal/pipeline"
	"appliance/plugins/kafka"
	"appliance/plugins/ledger"
)

// Every variable of the configuration tables, its default, another value, and where it arrives.
func TestEveryVariableOfTheTablesArrives(t *testing.T) {
	in := func(c *pipeline.Config) kafka.Config { return persist(c).Kafka.Config.(kafka.Config) }
	out := func(c *pipeline.Config) ledger.Config { return component(c, "postgres_ledger").(ledger.Config) }
	const pem = "-----BEGIN PUBLIC KEY-----\\nAAAA\\n-----END PUBLIC KEY-----"
	rows := []struct {
		name     string
		shipped  any
		set      string
		arrives  any
		at       func(*pipeline.Config) any
		together map[string]string // what the value needs beside it
	}{
		{"HTTP_HOST", "0.0.0.0", "127.0.0.1", "127.0.0.1", func(c *pipeline.Config) any { return c.Admin.Host }, nil},
		{"HTTP_PORT", 8080, "0", 0, func(c *pipeline.Config) any { return c.Admin.Port }, nil},
		{"KAFKA_BOOTSTRAP_SERVERS", []string{"localhost:9092"}, "a:1,b:2", []string{"a:1", "b:2"}, func(c *pipeline.Config) any { return c.Kafka["main"].Brokers }, nil},
		{"KAFKA_TOPIC", []string{"events.cloudevents.v1"}, "t", []string{"t"}, func(c *pipeline.Config) any { return in(c).Topics }, nil},
		{"KAFKA_TOPIC", "events.cloudevents.v1", "t", "t", func(c *pipeline.Config) any { return c.Topics[1].Name }, nil},
		{"KAFKA_DLQ_TOPIC", "events.cloudevents.v1.dlq", "t.dlq", "t.dlq", func(c *pipeline.Config) any { return c.DeadLetters["main"].Topic }, nil},
		{"KAFKA_DLQ_TOPIC", "events.cloudevents.v1.dlq", "t.dlq", "t.dlq", func(c *pipeline.Config) any { return c.Topics[0].Name }, nil},
		{"KAFKA_GROUP_ID", "cobalt-cloudevents-v1", "g", "g", func(c *pipeline.Config) any { return in(c).Group }, nil},
		{"KAFKA_DLQ_GROUP_ID", "appliance-dlq-index", "g", "g", func(c *pipeline.Config) any { return named(c, "dlq").Kafka.Group }, nil},
		{"KAFKA_INSTANCE_ID", "", "i", "i", func(c *pipeline.Config) any { return in(c).InstanceID }, nil},
		{"CONSUMER_BATCH_SIZE", 500, "100", 100, func(c *pipeline.Config) any { return in(c).Batch.Size }, nil},
		{"CONSUMER_BATCH_SIZE", 5000, "9000", 9000, func(c *pipeline.Config) any { return in(c).Batch.MaxSize }, nil},
		{"CONSUMER_BATCH_WINDOW", 250 * time.Millisecond, "1 second", time.Second, func(c *pipeline.Config) any { return in(c).Batch.Window }, nil},
		{"CONSUMER_WRITE_ATTEMPTS", 3, "7", 7, func(c *pipeline.Config) any { return out(c).Attempts }, nil},
		{"CONSUMER_RETRY_DELAY", 200 * time.Millisecond, "1s", time.Second, func(c *pipeline.Config) any { return out(c).RetryDelay }, nil},
		{"CONSUMER_DRAIN_TIMEOUT", 30 * time.Second, "10 seconds", 10 * time.Second, func(c *pipeline.Config) any { return persist(c).DrainTimeout }, nil},
		{"LAG_REFRESH_INTERVAL", 20 * time.Second, "1 minute", time.Minute, func(c *pipeline.Config) any { return c.Lag.RefreshInterval }, nil},
		{"LAG_REQUEST_TIMEOUT", 5 * time.Second, "900ms", 900 * time.Millisecond, func(c *pipeline.Config) any { return c.Lag.RequestTimeout }, nil},
		{"ADMIN_AUTH_ENABLED", true, "false", false, func(c *pipeline.Config) any { return c.Admin.Auth.Enabled }, nil},
		{"ADMIN_AUTH_ALGORITHM", "HS256", "RS512", "RS512", func(c *pipeline.Config) any { return c.Admin.Auth.Algorithm }, map[string]string{"ADMIN_AUTH_PUBLIC_KEY": pem}},
		{"ADMIN_AUTH_SECRET", longEnough, longEnough + "x", longEnough + "x", func(c *pipeline.Config) any { return c.Admin.Auth.Secret }, nil},
		{"ADMIN_AUTH_PUBLIC_KEY", "", pem, pem, func(c *pipeline.Config) any { return c.Admin.Auth.PublicKey }, nil},
		{"ADMIN_AUTH_ISSUER", "", "i", "i", func(c *pipeline.Config) any { return c.Admin.Auth.Issuer }, nil},
		{"ADMIN_AUTH_AUDIENCE", "", "a", "a", func(c *pipeline.Config) any { return c.Admin.Auth.Audience }, nil},
		{"ADMIN_AUTH_READ_SCOPE", "admin:read", "", "", func(c *pipeline.Config) any { return c.Admin.Auth.ReadScope }, nil},
		{"ADMIN_AUTH_WRITE_SCOPE", "admin:write", "w", "w", func(c *pipeline.Config) any { return c.Admin.Auth.WriteScope }, nil},
		{"ADMIN_AUTH_LEEWAY", 30 * time.Second, "0", time.Duration(0), func(c *pipeline.Config) any { return c.Admin.Auth.Leeway }, nil},
		{"REPLAY_ENABLED", true, "false", false, func(c *pipeline.Config) any { return c.Replay.Enabled }, nil},
		{"REPLAY_MAX_RECORDS", 200, "10", 10, func(c *pipeline.Config) any { return c.Replay.MaxRecords }, nil},
		{"REPLAY_MAX_ATTEMPTS", 3, "5", 5, func(c *pipeline.Config) any { return c.Replay.MaxAttempts }, nil},
		{"REPLAY_POLL_TIMEOUT", 5 * time.Second, "250 millis", 250 * time.Millisecond, func(c *pipeline.Config) any { return c.Replay.PollTimeout }, nil},
		{"DATABASE_URL", "jdbc:postgresql://localhost:5432/observatory", "postgres://u:p@h/d", "postgres://u:p@h/d", func(c *pipeline.Config) any { return c.Postgres["events"].URL }, nil},
		{"DATABASE_URL", "jdbc:postgresql://localhost:5432/observatory", "postgres://u:p@h/d", "postgres://u:p@h/d", func(c *pipeline.Config) any { return c.Postgres["events"].DirectURL }, nil},
		{"DATABASE_DIRECT_URL", "jdbc:postgresql://localhost:5432/observatory", "postgres://h/d", "postgres://h/d", func(c *pipeline.Config) any { return c.Postgres["events"].DirectURL }, nil},
		{"DATABASE_USER", "observatory", "me", "me", func(c *pipeline.Config) any { return c.Postgres["events"].User }, nil},
		{"DATABASE_PASSWORD", "", "pw", "pw", func(c *pipeline.Config) any { return c.Postgres["events"].Password }, nil},
		{"SHUTDOWN_DRAIN_DELAY", 5 * time.Second, "0s", time.Duration(0), func(c *pipeline.Config) any { return c.Shutdown.DrainDelay }, nil},
		{"LOG_LEVEL", "INFO", "DEBUG", "DEBUG", func(c *pipeline.Config) any { return c.Telemetry.LogLevel }, nil},
		{"SERVICE_NAME", "appliance", "s", "s", func(c *pipeline.Config) any { return c.Telemetry.Service }, nil},
		{"SERVICE_VERSION", "", "1.2", "1.2", func(c *pipeline.Config) any { return c.Telemetry.Version }, nil},
		{"HOSTNAME", "", "h", "h", func(c *pipeline.Config) any { return c.Telemetry.Instance }, nil},
	}
	base := map[string]string{"ADMIN_AUTH_SECRET": longEnough}
	plain, covered := shipped(t, base), map[string]bool{}
	for i, row := range rows {
		covered[row.name] = true
		t.Run(fmt.Sprintf("%s_%d", row.name, i), func(t *testing.T) {
			if got := row.at(plain); !reflect.DeepEqual(got, row.shipped) {
				t.Errorf("default is %#v, not %#v", got, row.shipped)
			}
			env := maps.Clone(base)
			maps.Copy(env, row.together)
			env[row.name] = row.set
			if got := row.at(shipped(t, env)); !reflect.DeepEqual(got, row.arrives) {
				t.Errorf("%q arrives as %#v, not %#v", row.set, got, row.arrives)
			}
		})
	}
	for _, name := range variablesOf(t) {
		if !covered[name] {
			t.Errorf("the shipped configuration reads %s, and no row here does", name)
		}
	}
}

// The rows of the tables without a variable.
func TestWhatHasNoVariableHasItsDefault(t *testing.T) {
	c := shipped(t, map[string]string{"ADMIN_AUTH_SECRET": longEnough})
	in := persist(c).Kafka.Config.(kafka.Config)
	for name, pair := range map[string][2]any{
		"commit":     {in.Commit, kafka.Commit{MaxBatch: 1000, MaxInterval: 5 * time.Second, Parallelism: 1}},
		"properties": {in.Properties, kafka.Properties{}},
		"restart": {persist(c).Restart, pipeline.Restart{
			MinBackoff: time.Second, MaxBackoff: 30 * time.Second, Jitter: 0.2, Restarts: 50, Within: 10 * time.Minute,
		}},
		"write pool": {c.Postgres["events"].Write.MaxConnections, 6},
		"shutdown":   {c.Shutdown.Timeout, 40 * time.Second},
		"partitions": {c.Postgres["events"].Partitions, pipeline.Partitions{Ahead: 3, Keep: 13}},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s is %+v, not %+v", name, pair[0], pair[1])
		}
	}
}

// variablesOf returns the variables that the shipped configuration reads, by noting what is asked for.
func variablesOf(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, row := range pipeline.Arguments(source(t)) {
		names = append(names, row.Variables...)
	}
	return names
}

func named(c *pipeline.Config, name string) pipeline.Pipeline {
	for _, p := range c.Pipelines {
		if p.Name == name {
			return p
		}
	}
	panic("no pipeline " + name)
}

func persist(c *pipeline.Config) pipeline.Pipeline { return named(c, "persist") }

func component(c *pipeline.Config, name string) any {
	for _, p := range c.Pipelines {
		for _, part := range p.Components {
			if part.Name == name {
				return part.Config
			}
		}
	}
	panic("no component " + name)
}
