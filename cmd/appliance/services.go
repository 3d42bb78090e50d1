package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"appliance/internal/app"
	"appliance/internal/broker"
	"appliance/internal/pg"
	"appliance/internal/pipeline"
	"appliance/plugins/ledger"
)

// services is what a configuration names, for a verb that works on it beside a running process or without one.
type services struct {
	cfg *pipeline.Config
}

// ledgerPipeline is a pipeline from a topic into a ledger.
type ledgerPipeline struct {
	Name, Cluster, Group string
	Topics               []string
	Database             string // name of the postgres resource
	DeadLetters          string // name of the dead_letters resource, "" for none
}

// placeholder stands for an absent secret of the listener, which no verb that uses services opens.
const placeholder = "not a secret: no listener is opened here"

// loadServices compiles the configuration of dir, or the shipped one, as lint and run do. An absent ADMIN_AUTH_SECRET is
// no fault here.
func loadServices(e *environment, dir string) (*services, error) {
	var args []string
	if dir != "" {
		args = []string{dir}
	}
	from, err := openDirectory(args)
	if err != nil {
		return nil, err
	}
	source, cfg, found := configure(from, withoutListener(e.getenv))
	if cfg == nil {
		if err := source.Print(e.stderr, found); err != nil {
			return nil, err
		}
		return nil, refused(fmt.Errorf("%s is refused: %s", from.shown, tally(found)))
	}
	return &services{cfg: cfg}, nil
}

func withoutListener(lookup func(string) (string, bool)) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, set := lookup(name)
		if (name == "ADMIN_AUTH_SECRET" || name == "AUTH_SECRET") && strings.TrimSpace(value) == "" {
			return placeholder, true
		}
		return value, set
	}
}

func configFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "config", "", "directory of .hcl files that says where things are (default: the shipped one)")
}

// exactly is cobra.ExactArgs that says what is missing, with the exit code of what is refused.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return refused(fmt.Errorf("%s takes %s\nSee: %s --help", cmd.Name(), what, cmd.CommandPath()))
	}
}

// optionalDirectory takes [DIR].
func optionalDirectory(cmd *cobra.Command, args []string) error {
	if len(args) <= 1 {
		return nil
	}
	return refused(fmt.Errorf("%s takes one directory at most\nSee: %s --help", cmd.Name(), cmd.CommandPath()))
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// ledgers returns the pipelines into a ledger in the order of the configuration, or the one of that name.
func (s *services) ledgers(name string) []ledgerPipeline {
	var found []ledgerPipeline
	for _, p := range s.cfg.Pipelines {
		if p.Kafka == nil || name != "" && p.Name != name {
			continue
		}
		for _, c := range p.Components {
			if conf, ok := c.Config.(ledger.Config); ok {
				found = append(found, ledgerPipeline{
					Name: p.Name, Cluster: p.Kafka.Cluster, Group: p.Kafka.Group, Topics: p.Kafka.Topics,
					Database: conf.Database, DeadLetters: conf.DeadLetters,
				})
			}
		}
	}
	return found
}

func (s *services) cluster(name string) (broker.Cluster, error) {
	k, ok := s.cfg.Kafka[name]
	if !ok {
		return broker.Cluster{}, fmt.Errorf("the configuration has no kafka %q", name)
	}
	return app.ClusterOf(k, nil)
}

func (s *services) database(name string) (pg.Config, error) {
	p, ok := s.cfg.Postgres[name]
	if !ok {
		return pg.Config{}, fmt.Errorf("the configuration has no postgres %q", name)
	}
	return app.DatabaseOf(p), nil
}

// reach is how long a verb waits for a broker or a database to answer at all.
const reach = 15 * time.Second

// openAdmin connects to a cluster and waits for its first answer.
func openAdmin(ctx context.Context, c broker.Cluster) (*broker.Admin, error) {
	admin, err := broker.NewAdmin(c)
	if err != nil {
		return nil, refused(err)
	}
	ping, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	if err := admin.Ping(ping); err != nil {
		admin.Close()
		return nil, unreachable(fmt.Errorf("kafka at %s: %w", strings.Join(c.Brokers, ","), err))
	}
	return admin, nil
}

// openDatabase connects and waits for the first answer. A server that answers with a refusal was reached, unless what it
// says is that there is no such database, or that it serves nobody now.
func openDatabase(ctx context.Context, name string, conf pg.Config) (*pg.DB, error) {
	if err := conf.Validate(); err != nil {
		return nil, refused(fmt.Errorf("postgres %s: %w", name, err))
	}
	open, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	db, err := pg.Open(open, conf)
	if err != nil {
		return nil, databaseError(name, err)
	}
	return db, nil
}

func databaseError(name string, err error) error {
	err = fmt.Errorf("postgres %s: %w", name, err)
	code, _, answered := pg.Code(err)
	if answered && !absent(code) || errors.Is(err, context.Canceled) {
		return err
	}
	return unreachable(err)
}

// absent tells the refusals of a database that is not there, or not there now, from those of what was asked: to make it,
// or to wait, is what helps, as with a server that doesn't answer.
func absent(sqlstate string) bool {
	switch sqlstate {
	case "3D000", // there is no database of that name
		"53300",                   // every connection is taken
		"57P01", "57P02", "57P03": // it is shutting down, has crashed, or is starting
		return true
	}
	return false
}

// topicThere errs where the topic doesn't exist, since a producer would wait for it.
func topicThere(ctx context.Context, c broker.Cluster, topic string) error {
	admin, err := openAdmin(ctx, c)
	if err != nil {
		return err
	}
	defer admin.Close()
	missing, err := admin.Missing(ctx, topic)
	if err != nil {
		return unreachable(err)
	}
	if slices.Contains(missing, topic) {
		return fmt.Errorf("topic %s does not exist: create it, or let `appliance topics ensure` do it", topic)
	}
	return nil
}
