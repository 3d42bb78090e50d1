package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"appliance/internal/broker"
	"appliance/internal/intake"
	"appliance/internal/pg"
	"appliance/internal/pipeline"
)

// resources are what the configuration names and pipelines share: opened once, closed last. Opening connects to nothing:
// a process that starts while its database is away is up, and not ready.
type resources struct {
	clusters  map[string]broker.Cluster
	admins    map[string]*broker.Admin
	databases map[string]*pg.DB
	configs   map[string]pg.Config
	months    map[string]pipeline.Partitions
	letters   map[string]*broker.DeadLetters
}

func openResources(ctx context.Context, cfg *pipeline.Config, log *slog.Logger) (*resources, error) {
	r := &resources{
		clusters: map[string]broker.Cluster{}, admins: map[string]*broker.Admin{}, databases: map[string]*pg.DB{},
		configs: map[string]pg.Config{}, months: map[string]pipeline.Partitions{}, letters: map[string]*broker.DeadLetters{},
	}
	err := errors.Join(r.openClusters(cfg, log), r.openDatabases(ctx, cfg), r.openLetters(cfg))
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *resources) openClusters(cfg *pipeline.Config, log *slog.Logger) error {
	for name, k := range cfg.Kafka {
		cluster, err := ClusterOf(k, log)
		if err != nil {
			return err
		}
		admin, err := broker.NewAdmin(cluster)
		if err != nil {
			return fmt.Errorf("kafka %s: %w", name, err)
		}
		r.clusters[name], r.admins[name] = cluster, admin
	}
	return nil
}

// ClusterOf is a kafka resource as the broker room takes it. It reads the certificates that the resource names.
func ClusterOf(k pipeline.Kafka, log *slog.Logger) (broker.Cluster, error) {
	c := broker.Cluster{Brokers: k.Brokers, ClientID: k.ClientID, DialTimeout: k.ConnectTimeout, Log: log}
	if k.SASL != nil {
		c.SASL = broker.SASL{Mechanism: k.SASL.Mechanism, User: k.SASL.Username, Password: k.SASL.Password}
	}
	if k.TLS == nil {
		return c, nil
	}
	conf, err := tlsConfig(*k.TLS)
	if err != nil {
		return c, fmt.Errorf("kafka %s: %w", k.Name, err)
	}
	c.TLS = conf
	return c, nil
}

func tlsConfig(t pipeline.TLS) (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read ca_file: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca_file %s holds no certificate", t.CAFile)
		}
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read cert_file and key_file: %w", err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}

// DatabaseOf is a postgres resource as the pg room takes it.
func DatabaseOf(p pipeline.Postgres) pg.Config {
	return pg.Config{
		URL: p.URL, DirectURL: p.DirectURL, User: p.User, Password: p.Password,
		MaxConns: p.Write.MaxConnections, ConnectTimeout: p.ConnectTimeout, TransactionPooling: p.Pooling == "transaction",
	}
}

func (r *resources) openDatabases(ctx context.Context, cfg *pipeline.Config) error {
	for name, p := range cfg.Postgres {
		conf := DatabaseOf(p)
		db, err := pg.New(ctx, conf)
		if err != nil {
			return fmt.Errorf("postgres %s: %w", name, err)
		}
		r.databases[name], r.configs[name], r.months[name] = db, conf, p.Partitions
	}
	return nil
}

func (r *resources) openLetters(cfg *pipeline.Config) error {
	for name, d := range cfg.DeadLetters {
		letters, err := broker.NewDeadLetters(r.clusters[d.Cluster], d.Topic, d.MaxMessageBytes)
		if err != nil {
			return fmt.Errorf("dead_letters %s: %w", name, err)
		}
		r.letters[name] = letters
	}
	return nil
}

// close ends the connections. It is called when nothing uses them any more.
func (r *resources) close() {
	for _, l := range r.letters {
		l.Close()
	}
	for _, a := range r.admins {
		a.Close()
	}
	for _, db := range r.databases {
		db.Close()
	}
}

// prepare brings every database to the schema of this build and premakes its partitions, and tries until it is done: an
// outage at the start is an outage like any other. Replicas may do it at once.
func (r *resources) prepare(ctx context.Context, c clock, log *slog.Logger) error {
	for delay := time.Second; ; delay = min(2*delay, 30*time.Second) {
		err := r.prepareOnce(ctx, c.Now())
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		log.Warn("database is not ready: pipelines wait", slog.Any("error", err), slog.Duration("again_after", delay))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.After(delay):
		}
	}
}

func (r *resources) prepareOnce(ctx context.Context, now time.Time) error {
	for name, conf := range r.configs {
		if _, err := pg.Migrate(ctx, conf); err != nil {
			return fmt.Errorf("migrate postgres %s: %w", name, err)
		}
		if err := r.ensureMonths(ctx, name, now); err != nil {
			return err
		}
	}
	return nil
}

func (r *resources) ensureMonths(ctx context.Context, name string, now time.Time) error {
	m := r.months[name]
	if _, err := r.databases[name].EnsureMonths(ctx, now, m.Keep, m.Ahead); err != nil {
		return fmt.Errorf("premake partitions of postgres %s: %w", name, err)
	}
	return nil
}

// keepMonths premakes partitions every hour, so that none is missing when a month begins.
func (r *resources) keepMonths(ctx context.Context, c clock, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.After(time.Hour):
		}
		for name := range r.databases {
			if err := r.ensureMonths(ctx, name, c.Now()); err != nil {
				log.Error("partitions are not premade: the next month may find none", slog.Any("error", err))
			}
		}
	}
}

// claims is a group's checkpoints in one database, as its subscription sees them.
type claims struct {
	db           *pg.DB
	group, owner string
}

var _ broker.Checkpoints = claims{}

// Claim makes this process the owner of the partition's checkpoint.
func (c claims) Claim(ctx context.Context, tp intake.TP, topicID [16]byte) (epoch, next int64, err error) {
	claim, err := c.db.Claim(ctx, c.group, tp.Topic, topicID, tp.Partition, c.owner)
	if err != nil {
		return 0, 0, err
	}
	if !claim.Found {
		return claim.Epoch, -1, nil
	}
	return claim.Epoch, claim.Next, nil
}
