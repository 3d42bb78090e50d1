package pipeline

import (
	"time"

	"github.com/hashicorp/hcl/v2"
)

// Config is what a directory says, checked. Every default has been filled in.
type Config struct {
	Kafka       map[string]Kafka
	Postgres    map[string]Postgres
	DeadLetters map[string]DeadLetters
	Topics      []Topic // sorted by block name
	Admin       *Admin  // nil without an admin block: then there is no listener
	Replay      Replay
	Lag         Lag
	Shutdown    Shutdown
	Telemetry   Telemetry
	Pipelines   []Pipeline // in the order of files and lines

	Hash    string   // of the effective configuration as it is shown, hexadecimal; a secret doesn't change it
	Secrets *Secrets // clears texts of other origins, such as log lines, of this configuration's secrets

	effective *node
}

// Kafka is a cluster.
type Kafka struct {
	Name           string
	Brokers        []string // host:port
	ClientID       string
	ConnectTimeout time.Duration
	TLS            *TLS  // nil for plain text
	SASL           *SASL // nil for none
}

// TLS says whom to trust and who we are; empty files mean the system's roots and no client certificate.
type TLS struct{ CAFile, CertFile, KeyFile, ServerName string }

// SASL is a broker login. Mechanism is PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
type SASL struct{ Mechanism, Username, Password string }

// Postgres is a database.
type Postgres struct {
	Name           string
	URL, DirectURL string // postgres://, postgresql:// or jdbc:postgresql://; DirectURL is URL unless given
	User, Password string // for what the URLs leave out
	Pooling        string // what stands between: "session" or "transaction"
	ConnectTimeout time.Duration
	Write, Read    Pool
	Partitions     Partitions
}

// Pool bounds the connections of one use.
type Pool struct {
	MaxConnections int
	AcquireTimeout time.Duration
	MaxLifetime    time.Duration
	MaxIdleTime    time.Duration
}

// Partitions says how many months are kept ready: Ahead of the current one, and Keep before it.
type Partitions struct{ Ahead, Keep int }

// DeadLetters is a dead-letter topic.
type DeadLetters struct {
	Name, Cluster, Topic string
	MaxMessageBytes      int // what one message of the topic may have
	Timeout              time.Duration
}

// Topic is a topic that `topics ensure` creates.
type Topic struct {
	Label         string // of the block
	Name, Cluster string
	Partitions    int
	Replication   int // -1 is the broker's default
	Retention     time.Duration
	CleanupPolicy string
}

// Admin is the listener for operators: admin API, health and metrics.
type Admin struct {
	Host string
	Port int // 0 takes a free one
	Auth Auth
}

// Auth says whose tokens are taken.
type Auth struct {
	Enabled               bool
	Algorithm             string // HS256, HS384, HS512, RS256, RS384 or RS512
	Secret                string // for HS: at least 32 characters
	PublicKey             string // for RS: PEM
	Issuer, Audience      string // "" for any
	ReadScope, WriteScope string // "" for none
	Leeway                time.Duration
}

// Replay bounds what putting dead letters back may do.
type Replay struct {
	Enabled                 bool
	MaxRecords, MaxAttempts int
	PollTimeout             time.Duration
}

// Lag says how often and how patiently the broker is asked.
type Lag struct{ RefreshInterval, RequestTimeout time.Duration }

// Shutdown bounds the way down: readiness is false for DrainDelay before anything stops, and Timeout bounds it all.
type Shutdown struct{ DrainDelay, Timeout time.Duration }

// Telemetry names the process in logs, metrics and traces.
type Telemetry struct{ LogLevel, Service, Version, Instance string }

// Pipeline is one stream.
type Pipeline struct {
	Name         string
	Range        hcl.Range
	YAML         string      // for StreamBuilder.SetYAML; holds secrets in clear
	Redacted     string      // the same for people
	Lines        []hcl.Range // where each line of YAML comes from, the first at index 0
	Kafka        *KafkaInput // nil where the input is another
	DeadLetters  []string    // names of the dead_letters resources in use, each once
	Databases    []string    // names of the postgres resources in use, each once
	Uses         []Reference // every resource in use, each once
	Components   []Component // at any depth, in the order of the text
	Restart      Restart
	DrainTimeout time.Duration
}

// Component is one component of a pipeline.
type Component struct {
	Kind   Kind
	Name   string
	Range  hcl.Range
	Config any // what the plugin's Parse returned; nil for the engine's own components
}

// KafkaInput is the part of a pipeline's input that the supervisor's subscription is made of.
type KafkaInput struct {
	Cluster, Group, Start string
	Topics                []string
	Lanes                 int
	Config                any // what the input plugin's Parse returned
}

// Restart is the policy of a pipeline that failed.
type Restart struct {
	MinBackoff, MaxBackoff time.Duration
	Jitter                 float64 // 0 to 1: the share of a wait that is random
	Restarts               int     // within Within; one more and the pipeline has failed
	Within                 time.Duration
}

// Line returns where a line of the pipeline's YAML was written, from 1. It is the pipeline itself for a line that
// nobody wrote.
func (p Pipeline) Line(n int) hcl.Range {
	if n < 1 || n > len(p.Lines) || p.Lines[n-1].Filename == "" {
		return p.Range
	}
	return p.Lines[n-1]
}
