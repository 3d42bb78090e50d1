// Package pg is the PostgreSQL behind the ledger: events as rows, how far each group has come, and the index of dead
// letters. It holds the SQL and the driver; whose fault an error is and what to do about it is decided elsewhere.
package pg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DB is a pool of connections to one database. Safe for concurrent use.
type DB struct {
	pool *pgxpool.Pool
}

// Open makes a pool and waits until one connection answers, at most Config.ConnectTimeout for each address. An error
// never shows a password.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	db, err := New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := db.Ping(ctx); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// New makes the pool without dialling: for a process that starts before its database does.
func New(ctx context.Context, cfg Config) (*DB, error) {
	poolConfig, err := cfg.pool()
	if err != nil {
		return nil, fmt.Errorf("open postgres: %w", err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, poolConfig)
	if err != nil {
		return nil, fmt.Errorf("open postgres: %w", plain(err))
	}
	return &DB{pool: pool}, nil
}

// Validate says what Open would refuse about the configuration, without dialling.
func (c Config) Validate() error {
	if _, err := c.pool(); err != nil {
		return err
	}
	_, err := c.direct().pool()
	return err
}

// Close closes all connections and waits for those in use.
func (d *DB) Close() { d.pool.Close() }

// Ping asks the server for an answer on one connection, dialling where none is open.
func (d *DB) Ping(ctx context.Context) error {
	if err := d.pool.Ping(ctx); err != nil {
		return fmt.Errorf("ping postgres: %w", plain(err))
	}
	return nil
}

// ErrFenced tells that a partition of the batch was claimed by another owner since: nothing was written.
var ErrFenced = errors.New("fenced: claimed under another epoch")

// stateFenced is raised by events.advance_checkpoint.
const stateFenced = "AP001"

// Code returns the SQLSTATE and, where the error names one, the constraint. ok is false for an error that does not come
// from the server: a connection that broke, a deadline.
func Code(err error) (sqlstate, constraint string, ok bool) {
	if pe, found := errors.AsType[*pgconn.PgError](err); found {
		return pe.Code, pe.ConstraintName, true
	}
	return "", "", false
}

// Describe says in one line of at most 1,024 bytes what the server refused: SQLSTATE, message, constraint and column. It
// leaves out the error's DETAIL, which quotes the row.
func Describe(err error) string {
	pe, found := errors.AsType[*pgconn.PgError](err)
	if !found {
		return clip(err.Error())
	}
	text := "SQLSTATE " + pe.Code + ": " + pe.Message
	if pe.ConstraintName != "" {
		text += " (constraint " + pe.ConstraintName + ")"
	}
	if pe.ColumnName != "" {
		text += " (column " + pe.ColumnName + ")"
	}
	return clip(text)
}

// plain drops the driver's own error type around a failed connection attempt: it carries the whole configuration,
// password included.
func plain(err error) error {
	ce, ok := errors.AsType[*pgconn.ConnectError](err)
	if !ok {
		return err
	}
	return fmt.Errorf("connect as %s to %s: %w", ce.Config.User, ce.Config.Database, errors.Unwrap(ce))
}

// failed names what was being done, and the context's end where that is the reason the statement ended.
func failed(ctx context.Context, doing string, err error) error {
	if state, _, ok := Code(err); ok && state == stateFenced {
		return fmt.Errorf("%s: %w: %s", doing, ErrFenced, Describe(err))
	}
	if ended := context.Cause(ctx); ended != nil && !errors.Is(err, ended) {
		return fmt.Errorf("%s: %w: %w", doing, ended, plain(err))
	}
	return fmt.Errorf("%s: %w", doing, plain(err))
}
