package pg

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"appliance/migrations"
)

// versionTable is our own, so that a database that another program migrates with goose keeps its.
const versionTable = "events.schema_version"

// Migrated tells what Migrate did.
type Migrated struct {
	From, To int64 // versions of the schema; equal when there was nothing to do
}

// Migrate brings the schema to this build's version, over DirectURL: the lock that makes replicas wait for one another
// is one of the session. Every replica may call it at once and at every start. It waits at most five minutes for another.
func Migrate(ctx context.Context, cfg Config) (Migrated, error) {
	var done Migrated
	poolConfig, err := cfg.direct().pool()
	if err != nil {
		return done, fmt.Errorf("migrate: %w", err)
	}
	db := stdlib.OpenDB(*poolConfig.ConnConfig)
	defer db.Close() // its error tells nothing more: the migrations were committed or not
	if err := createSchema(ctx, db); err != nil {
		return done, fmt.Errorf("migrate: %w", plain(err))
	}
	provider, err := newProvider(db)
	if err != nil {
		return done, fmt.Errorf("migrate: %w", err)
	}
	results, err := provider.Up(ctx)
	if err != nil {
		return done, fmt.Errorf("migrate: %w", plain(err))
	}
	done.To, err = provider.GetDBVersion(ctx)
	if err != nil {
		return done, fmt.Errorf("migrate: %w", plain(err))
	}
	done.From = done.To
	if len(results) > 0 {
		done.From = results[0].Source.Version - 1
	}
	return done, nil
}

func newProvider(db *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(migrations.Postgres, "postgres")
	if err != nil {
		return nil, err
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, files, goose.WithSessionLocker(locker),
		goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true),
		goose.WithSlog(slog.New(slog.DiscardHandler)))
}

// createSchema makes the schema that holds the table of versions. IF NOT EXISTS still fails when two do it at the same
// moment (23505 on the catalogue), and then the schema is there.
func createSchema(ctx context.Context, db *sql.DB) error {
	var there bool
	if err := db.QueryRowContext(ctx, "SELECT to_regnamespace('events') IS NOT NULL").Scan(&there); err != nil || there {
		return err
	}
	_, err := db.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS events")
	if state, _, ok := Code(err); ok && (state == "23505" || state == "42P06") {
		return nil
	}
	return err
}
