package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"appliance/internal/app"
	"appliance/internal/broker"
	"appliance/internal/embedded"
)

// runDev starts the embedded services and then runs as always, with their addresses in place of the environment's.
func runDev(ctx context.Context, e *environment, args []string, f runFlags) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	path, _ := e.getenv("PATH")
	services, err := embedded.Start(ctx, embedded.Options{
		Dir: f.data, Path: path, UserCache: cache, Out: e.stderr,
		Log: slog.New(slog.NewJSONHandler(e.stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if errors.Is(err, embedded.ErrLocked) {
		return refused(err)
	}
	if err != nil {
		return fmt.Errorf("start embedded services: %w", err)
	}
	lookup := overlay(devEnvironment(services), e.getenv)
	err = ensureDevTopics(ctx, e, args, lookup)
	if err == nil {
		err = run(ctx, e, args, f, lookup, func(addr app.Addresses) { greet(e.stderr, e.program, f.data, services, addr) })
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return errors.Join(err, services.Close(closing))
}

// devEnvironment are the variables of the shipped configuration that --dev decides. Loopback only, no drain delay: nobody
// routes traffic here.
func devEnvironment(s *embedded.Services) map[string]string {
	env := map[string]string{
		"KAFKA_BOOTSTRAP_SERVERS": s.KafkaBootstrap,
		"DATABASE_URL":            s.PostgresURL,
		"DATABASE_DIRECT_URL":     s.PostgresURL,
		"DATABASE_USER":           "",
		"DATABASE_PASSWORD":       "",
		"HTTP_HOST":               "127.0.0.1",
		"SHUTDOWN_DRAIN_DELAY":    "0s",
		"ADMIN_AUTH_SECRET":       s.Secrets.Admin,
		"AUTH_SECRET":             s.Secrets.Ingest,
	}
	return env
}

func ensureDevTopics(ctx context.Context, e *environment, args []string, lookup func(string) (string, bool)) error {
	dir, err := openDirectory(args)
	if err != nil {
		return err
	}
	source, cfg, found := configure(dir, lookup)
	if found.HasErrors() {
		return printFindings(e, source, found)
	}
	for _, k := range cfg.Kafka {
		cluster, err := app.ClusterOf(k, nil)
		if err != nil {
			return err
		}
		admin, err := broker.NewAdmin(cluster)
		if err != nil {
			return err
		}
		_, err = admin.Ensure(ctx, topicsOf(cfg, k.Name))
		admin.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// greet says where everything is and what to do first. program is how this one was called.
func greet(w io.Writer, program, data string, s *embedded.Services, addr app.Addresses) {
	var b strings.Builder
	fmt.Fprintf(&b, "\nappliance is ready.\n\n")
	fmt.Fprintf(&b, "  admin     %s\n", addr.Admin)
	fmt.Fprintf(&b, "  kafka     %s\n", s.KafkaBootstrap)
	fmt.Fprintf(&b, "  postgres  %s\n\n", s.PostgresURL)
	fmt.Fprintf(&b, "Send events, see their rows, and have it proved, in another terminal:\n")
	fmt.Fprintf(&b, "  export KAFKA_BOOTSTRAP_SERVERS=%s DATABASE_URL='%s'\n", s.KafkaBootstrap, s.PostgresURL)
	fmt.Fprintf(&b, "  %[1]s generate -n 10 | %[1]s produce -\n", program)
	fmt.Fprintf(&b, "  psql \"$DATABASE_URL\" -c 'select ce_id, ce_type, ce_source from events.cloud_event order by event_uid desc limit 10'\n")
	fmt.Fprintf(&b, "  %s audit\n", program)
	fmt.Fprintf(&b, "Ask how far it is:\n")
	fmt.Fprintf(&b, "  curl -H \"Authorization: Bearer $(%s token --data %s)\" %s/admin/consumer\n\n", program, data, addr.Admin)
	_, _ = io.WriteString(w, b.String()) // words for a person
}
