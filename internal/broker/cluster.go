// Package broker is the only room that talks to Kafka: a subscription whose partitions are handed out by intake's rule, the
// producer of dead letters, topics and offsets. It drives franz-go and decides nothing that a pure room can decide.
package broker

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Cluster says how a Kafka cluster is reached.
type Cluster struct {
	Brokers     []string      // host:port, at least one
	ClientID    string        // shown in the broker's logs and quotas; "" means appliance
	TLS         *tls.Config   // nil: plain text
	SASL        SASL          // zero: no authentication
	DialTimeout time.Duration // of one connection; 0 means 5 s
	Log         *slog.Logger
}

// SASL is a user of the cluster.
type SASL struct {
	Mechanism      string // PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; "" for none
	User, Password string
}

func (c Cluster) options() ([]kgo.Opt, error) {
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...),
		kgo.ClientID(orDefault(c.ClientID, "appliance")),
		kgo.DialTimeout(orDefault(c.DialTimeout, 5*time.Second)),
		kgo.DisableClientMetrics(),
		kgo.WithLogger(clientLog{c.log()}),
	}
	if c.TLS != nil {
		opts = append(opts, kgo.DialTLSConfig(c.TLS))
	}
	switch c.SASL.Mechanism {
	case "":
	case "PLAIN":
		opts = append(opts, kgo.SASL(plain.Auth{User: c.SASL.User, Pass: c.SASL.Password}.AsMechanism()))
	case "SCRAM-SHA-256":
		opts = append(opts, kgo.SASL(scram.Auth{User: c.SASL.User, Pass: c.SASL.Password}.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		opts = append(opts, kgo.SASL(scram.Auth{User: c.SASL.User, Pass: c.SASL.Password}.AsSha512Mechanism()))
	default:
		return nil, fmt.Errorf("SASL mechanism %q is none of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512", c.SASL.Mechanism)
	}
	return opts, nil
}

func (c Cluster) log() *slog.Logger {
	if c.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Log
}

func (c Cluster) client(more ...kgo.Opt) (*kgo.Client, error) {
	opts, err := c.options()
	if err != nil {
		return nil, err
	}
	return kgo.NewClient(append(opts, more...)...)
}

// Admin asks the cluster about topics and offsets. One serves the whole process; it is safe for concurrent use.
type Admin struct {
	client *kgo.Client
	adm    *kadm.Client
}

// NewAdmin returns an Admin of the cluster. It doesn't connect yet. Requests give up after 10 s.
func NewAdmin(c Cluster) (*Admin, error) {
	client, err := c.client(kgo.RetryTimeout(10*time.Second), kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		return nil, fmt.Errorf("open admin client: %w", err)
	}
	return &Admin{client: client, adm: kadm.NewClient(client)}, nil
}

// Close ends the connections.
func (a *Admin) Close() { a.client.Close() }

// Ping returns nil when a broker answers.
func (a *Admin) Ping(ctx context.Context) error {
	if err := a.client.Ping(ctx); err != nil {
		return fmt.Errorf("ping broker: %w", err)
	}
	return nil
}

// TopicID writes a topic's id as Kafka's tools do: 22 characters.
func TopicID(id [16]byte) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

func orDefault[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// clientLog sends franz-go's own lines to the log: its warnings and errors, since what is normal is not news.
type clientLog struct{ log *slog.Logger }

func (l clientLog) Level() kgo.LogLevel { return kgo.LogLevelWarn }

func (l clientLog) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	at := slog.LevelWarn
	if level == kgo.LogLevelError {
		at = slog.LevelError
	}
	l.log.Log(context.Background(), at, "kafka client", append([]any{slog.String("detail", msg)}, keyvals...)...)
}
