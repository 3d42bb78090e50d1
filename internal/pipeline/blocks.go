package pipeline

import (
	"encoding/json"
	"fmt"
	"slices"
)

// The types of the top-level blocks.
const (
	blockVariable    = "variable"
	blockLocals      = "locals"
	blockKafka       = "kafka"
	blockPostgres    = "postgres"
	blockDeadLetters = "dead_letters"
	blockTopic       = "topic"
	blockAdmin       = "admin"
	blockReplay      = "replay"
	blockLag         = "lag"
	blockShutdown    = "shutdown"
	blockTelemetry   = "telemetry"
	blockPipeline    = "pipeline"
)

// topBlock describes a block of the language.
type topBlock struct {
	name   string
	label  string // what its one label is, "" without labels: then it stands once
	doc    string
	fields []field
}

// resources returns the labelled blocks that others refer to, in the order in which they are evaluated: each kind may
// refer to those before it.
func resources() []topBlock {
	return []topBlock{kafkaBlock(), postgresBlock(), deadLettersBlock(), topicBlock()}
}

// settings returns the blocks that stand once.
func settings() []topBlock {
	return []topBlock{adminBlock(), replayBlock(), lagBlock(), shutdownBlock(), telemetryBlock()}
}

func kafkaBlock() topBlock {
	return topBlock{blockKafka, "name", "A Kafka cluster.", []field{
		strs("brokers", "Addresses to begin with, host:port.").refusing(func(v any) string { return hostPort(v.(string)) }),
		str("client_id", "The name by which the broker knows this process.").or("appliance"),
		dur("connect_timeout", "How long one connection attempt may take.").or("10s"),
		obj("tls", "Encrypts the connection. An empty block trusts the system's roots.",
			str("ca_file", "PEM file of the authorities to trust.").or(""),
			str("cert_file", "PEM file of the client's certificate.").or(""),
			str("key_file", "PEM file of the client's key.").or(""),
			str("server_name", "The name that the broker's certificate must have, if not the address.").or("")).optional(),
		obj("sasl", "Logs in at the broker.",
			str("mechanism", "How.").or("SCRAM-SHA-512").oneOf("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
			str("username", "Who."), str("password", "The password.").hide()).optional(),
	}}
}

func postgresBlock() topBlock {
	return topBlock{blockPostgres, "name", "A PostgreSQL database.", []field{
		str("url", "Where it is: postgres://…, postgresql://… or jdbc:postgresql://….").hide().refusing(databaseURL),
		str("direct_url", "The same database past any pooler, for migrations and leases. It is url unless given.").hide().refusing(databaseURL).optional(),
		str("user", "The user, where the URL names none.").or(""),
		str("password", "The password, where the URL has none.").or("").hide(),
		str("pooling", "What a pooler between here and there does; with transaction, direct_url must be given.").or("session").oneOf("session", "transaction"),
		dur("connect_timeout", "How long one connection attempt may take.").or("5s"),
		poolField("write_pool", "Connections that write.", 6), poolField("read_pool", "Connections that only read.", 4),
		obj("partitions", "The months that are kept ready.",
			num("ahead", "Months after the current one.").or(3).within(1, 24),
			num("keep", "Months before it.").or(13).within(1, 240)),
	}}
}

func poolField(name, doc string, connections int) field {
	return obj(name, doc,
		num("max_connections", "The most at once.").or(connections).within(1, 500),
		dur("acquire_timeout", "How long to wait for a free one.").or("5s"),
		dur("max_lifetime", "A connection is replaced after this time.").or("30m"),
		dur("max_idle_time", "A connection is closed after this time without use.").or("10m"))
}

func deadLettersBlock() topBlock {
	return topBlock{blockDeadLetters, "name", "A topic for records that cannot be stored.", []field{
		ref("cluster", "Where the topic is.", blockKafka),
		str("topic", "The topic.").refusing(topicName),
		num("max_message_bytes", "What the broker takes as one message. A larger dead letter is published in parts.").or(1_000_000).within(16_384, 1<<30),
		dur("timeout", "How long a publication may take before the batch fails.").or("10s"),
	}}
}

func topicBlock() topBlock {
	return topBlock{blockTopic, "name", "A topic that `appliance topics ensure` creates. `run` never does.", []field{
		ref("cluster", "Where.", blockKafka),
		str("name", "The topic.").refusing(topicName),
		num("partitions", "How many.").or(12).within(1, 10_000),
		num("replication", "Copies of each partition; -1 is the broker's default.").or(-1).within(-1, 32),
		dur("retention", "How long records are kept.").or("168h"),
		str("cleanup_policy", "What happens to old records.").or("delete").oneOf("delete", "compact", "compact,delete"),
	}}
}

func adminBlock() topBlock {
	return topBlock{blockAdmin, "", "The listener for operators: admin API, health and metrics.", []field{
		str("host", "The address to listen on.").or("0.0.0.0"),
		num("port", "The port; 0 takes a free one.").or(8080).within(0, 65_535),
		obj("auth", "Whose tokens are taken.",
			flag("enabled", "Off opens every admin route to anyone who can reach the port.").or(true),
			str("algorithm", "The one algorithm that is accepted, whatever a token says.").or("HS256").oneOf("HS256", "HS384", "HS512", "RS256", "RS384", "RS512"),
			str("secret", "The key of HS*: at least 32 characters.").or("").hide(),
			str("public_key", "The key of RS*: PEM, line ends also as \\n.").or(""),
			str("issuer", "When set, iss must equal it.").or(""),
			str("audience", "When set, aud must contain it.").or(""),
			str("read_scope", "Scope for looking. Empty asks for no scope.").or("admin:read"),
			str("write_scope", "Scope for acting, which includes looking.").or("admin:write"),
			dur("leeway", "Tolerance on exp and nbf.").or("30s")),
	}}
}

func replayBlock() topBlock {
	return topBlock{blockReplay, "", "Bounds of putting dead letters back.", []field{
		flag("enabled", "Whether a replay may be committed. Looking stays possible.").or(true),
		num("max_records", "Records of one listing or replay. More is refused.").or(200).within(1, 100_000),
		num("max_attempts", "How often one record may be replayed.").or(3).within(1, 1000),
		dur("poll_timeout", "How long one read of the topic may take.").or("5s"),
	}}
}

func lagBlock() topBlock {
	return topBlock{blockLag, "", "How the lag is measured.", []field{
		dur("refresh_interval", "How often the broker is asked.").or("20s"),
		dur("request_timeout", "How long it has to answer; also the bound of the reachability probe.").or("5s"),
	}}
}

func shutdownBlock() topBlock {
	return topBlock{blockShutdown, "", "The way down.", []field{
		dur("drain_delay", "How long readiness is false before anything stops.").or("5s"),
		dur("timeout", "The bound of it all, after which the process exits with 1.").or("40s"),
	}}
}

func telemetryBlock() topBlock {
	return topBlock{blockTelemetry, "", "How the process names itself.", []field{
		str("log_level", "What is logged.").or("INFO").oneOf("DEBUG", "INFO", "WARN", "ERROR"),
		str("service", "The service label.").or("appliance"),
		str("version", "The version label; empty takes the binary's.").or(""),
		str("instance", "The instance label; empty takes the host's name.").or(""),
	}}
}

func pipelineBlock() topBlock {
	return topBlock{blockPipeline, "name", "A stream: one input, processors in order, one output.", []field{
		comp("input", Input, kindScalar, "Where messages come from."),
		comp("processors", Processor, kindArray, "What happens to them, in order.").optional(),
		comp("output", Output, kindScalar, "Where they go."),
		comp("caches", Cache, kindMap, "Caches that processors name.").optional(),
		comp("rate_limits", RateLimit, kindMap, "Rate limits that components name.").optional(),
		dur("drain_timeout", "How long a stop may take to finish what is in flight.").or("30s"),
		obj("restart", "What happens after a failure.",
			dur("min_backoff", "The first wait.").or("1s"),
			dur("max_backoff", "The longest wait.").or("30s"),
			decimal("jitter", "The share of a wait that is random, 0 to 1.").or(0.2).within(0, 1),
			obj("budget", "Beyond it the pipeline has failed, visibly and for good.",
				num("restarts", "How many.").or(50).within(0, 100_000),
				dur("within", "In what time.").or("10m"))),
	}}
}

func plainField(name, typ, doc string) field {
	return field{Name: name, Type: typ, Kind: kindScalar, Description: doc}
}

func str(name, doc string) field     { return plainField(name, typeString, doc) }
func num(name, doc string) field     { return plainField(name, typeInt, doc) }
func decimal(name, doc string) field { return plainField(name, typeFloat, doc) }
func flag(name, doc string) field    { return plainField(name, typeBool, doc) }
func dur(name, doc string) field     { return plainField(name, typeDuration, doc) }

func strs(name, doc string) field {
	f := str(name, doc)
	f.Kind = kindArray
	return f
}

func ref(name, doc, kind string) field {
	f := plainField(name, typeReference, doc)
	f.refers = kind
	return f
}

func obj(name, doc string, children ...field) field {
	f := plainField(name, typeObject, doc)
	f.Children = children
	return f
}

func comp(name string, kind Kind, many, doc string) field {
	f := plainField(name, string(kind), doc)
	f.Kind = many
	return f
}

// or gives a default; a wrong one is a mistake in this file.
func (f field) or(value any) field {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("default of %s: %v", f.Name, err))
	}
	f.Default = raw
	return f
}

func (f field) optional() field { f.Optional = true; return f }
func (f field) hide() field     { f.Secret = true; return f }

func (f field) oneOf(options ...string) field { f.Options = slices.Clone(options); return f }

func (f field) refusing(why func(any) string) field { f.refuse = why; return f }

func (f field) within(low, high float64) field {
	return f.refusing(func(v any) string {
		if n, ok := v.(float64); ok && (n < low || n > high) {
			return fmt.Sprintf("must be %v to %v, not %v", low, high, n)
		}
		return ""
	})
}
