package pg

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
)

// This file is for measurements: a database of their own, the table's floor, and the server's clock.

// CreateDatabase creates a database beside the configured one and returns its configuration.
func CreateDatabase(ctx context.Context, c Config, name string) (Config, error) {
	beside := c
	for _, address := range []*string{&beside.URL, &beside.DirectURL} {
		if *address == "" {
			continue
		}
		renamed, err := withDatabase(*address, name)
		if err != nil {
			return Config{}, fmt.Errorf("create database: %w", err)
		}
		*address = renamed
	}
	err := administer(ctx, c, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	return beside, err
}

// DropDatabase drops a database beside the configured one, and whatever is connected to it.
func DropDatabase(ctx context.Context, c Config, name string) error {
	return administer(ctx, c, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
}

func administer(ctx context.Context, c Config, statement string) error {
	db, err := Open(ctx, c.direct())
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.pool.Exec(ctx, statement); err != nil {
		return failed(ctx, "administer databases", err)
	}
	return nil
}

func withDatabase(raw, name string) (string, error) {
	text, err := connString(raw)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", errURL
	}
	u.Path = "/" + name
	return u.String(), nil
}

// EncodeCopy writes the rows as PostgreSQL's binary COPY takes them, so that a measurement of Copy has no encoding in it.
func EncodeCopy(rows []Row) []byte {
	out := bytes.NewBuffer(make([]byte, 0, 700*len(rows)))
	out.WriteString("PGCOPY\n\xff\r\n\x00")
	word := func(n uint32) { out.Write(binary.BigEndian.AppendUint32(nil, n)) }
	field := func(b []byte) { word(uint32(len(b))); out.Write(b) }
	long := func(n int64) { field(binary.BigEndian.AppendUint64(nil, uint64(n))) }
	word(0)
	word(0)
	epoch := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range rows {
		r := &rows[i]
		out.Write([]byte{0, 7})
		long(r.OccurredAt.Sub(epoch).Microseconds())
		word(uint32(len(r.Raw) + 1))
		out.WriteByte(1) // jsonb's version
		out.Write(r.Raw)
		field(r.SHA256[:])
		field(r.TopicID[:])
		field(binary.BigEndian.AppendUint32(nil, uint32(r.Partition)))
		long(r.Offset)
		if r.Traceparent == "" {
			word(^uint32(0)) // null
		} else {
			field([]byte(r.Traceparent))
		}
	}
	out.Write([]byte{0xff, 0xff})
	return out.Bytes()
}

const copySQL = `COPY events.cloud_event (occurred_at, raw, payload_sha256, origin_topic_id, origin_partition, origin_offset, traceparent)
 FROM STDIN (FORMAT binary)`

// Copy puts rows that EncodeCopy wrote straight into the table, in one transaction, with no checkpoint and no answer to a
// conflict: the least that storing them can cost. It returns how many they were.
func (d *DB) Copy(ctx context.Context, encoded []byte) (int64, error) {
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return 0, failed(ctx, "copy rows", err)
	}
	defer conn.Release()
	tag, err := conn.Conn().PgConn().CopyFrom(ctx, bytes.NewReader(encoded), copySQL)
	if err != nil {
		return 0, failed(ctx, "copy rows", err)
	}
	return tag.RowsAffected(), nil
}

// Empty removes all events and has the server write what is dirty, so that the next measurement pays only for itself. A
// user who may not order a checkpoint measures without one.
func (d *DB) Empty(ctx context.Context) error {
	if _, err := d.pool.Exec(ctx, "TRUNCATE events.cloud_event"); err != nil {
		return failed(ctx, "empty events", err)
	}
	_, err := d.pool.Exec(ctx, "CHECKPOINT")
	if state, _, _ := Code(err); err != nil && state != "42501" {
		return failed(ctx, "order checkpoint", err)
	}
	return nil
}

// Span is when rows came in, by the server's clock, and how many there are. Without rows the times are zero.
type Span struct {
	First, Last time.Time
	Rows        int64
}

// Ingested counts the rows, reading the whole table.
func (d *DB) Ingested(ctx context.Context) (Span, error) {
	var s Span
	var first, last *time.Time
	err := d.pool.QueryRow(ctx, "SELECT min(ingested_at), max(ingested_at), count(*) FROM events.cloud_event").Scan(&first, &last, &s.Rows)
	if err != nil {
		return Span{}, failed(ctx, "count rows", err)
	}
	if first != nil && last != nil {
		s.First, s.Last = *first, *last
	}
	return s, nil
}

// Clock returns the server's time.
func (d *DB) Clock(ctx context.Context) (time.Time, error) {
	var at time.Time
	if err := d.pool.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&at); err != nil {
		return at, failed(ctx, "read clock", err)
	}
	return at, nil
}
