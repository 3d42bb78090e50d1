package pg

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// Position is how far a batch goes in one partition, and the claim under which it was read.
type Position struct {
	Topic     string
	TopicID   [16]byte
	Partition int32
	Epoch     int64 // as Claim returned it
	Next      int64 // the offset after the last record that the batch accounts for
}

const (
	advanceSQL = "SELECT events.advance_checkpoint($1, $2, $3, $4, $5)"
	// The rows come in the order of their identity, and a function's rows are inserted as it returns them.
	insertSQL = `INSERT INTO events.cloud_event
       (occurred_at, raw, payload_sha256, origin_topic_id, origin_partition, origin_offset, traceparent)
SELECT occurred_at, raw::jsonb, payload_sha256, origin_topic_id, origin_partition, origin_offset, traceparent
  FROM unnest($1, $2, $3, $4, $5, $6, $7)
    AS r(occurred_at, raw, payload_sha256, origin_topic_id, origin_partition, origin_offset, traceparent)
    ON CONFLICT (occurred_at, ce_source, ce_id) DO NOTHING`
)

// Write stores the rows and moves the checkpoints of positions in one transaction, and returns how many rows were not
// there before. It is one round trip: the statements are sent together and end with one Sync, which commits them all or,
// after the first error, none. The checkpoints come first, so that a writer that lost its claim is refused before it
// holds any row: then the error is ErrFenced. rows may be empty.
//
// After an error that is no answer of the server (a connection that broke) the transaction may have been committed.
// Writing the same again is safe: rows are stored once, and a checkpoint never goes back.
func (d *DB) Write(ctx context.Context, group string, rows []Row, positions []Position) (int, error) {
	const doing = "write rows and checkpoint"
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return 0, failed(ctx, doing, err)
	}
	defer conn.Release()
	batch := &pgconn.Batch{}
	types := conn.Conn().TypeMap()
	if err := advance(batch, types, group, positions); err != nil {
		return 0, failed(ctx, doing, err)
	}
	if err := insert(batch, types, rows); err != nil {
		return 0, failed(ctx, doing, err)
	}
	written, err := run(ctx, conn.Conn().PgConn(), batch)
	if err != nil {
		return 0, failed(ctx, doing, err)
	}
	return written, nil
}

// Try inserts the rows as Write does and takes it back, whatever happened: nil says that the database would hold them.
func (d *DB) Try(ctx context.Context, rows []Row) error {
	const doing = "try rows"
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return failed(ctx, doing, err)
	}
	defer conn.Release()
	pc := conn.Conn().PgConn()
	batch := &pgconn.Batch{}
	batch.ExecParams("BEGIN", nil, nil, nil, nil)
	if err := insert(batch, conn.Conn().TypeMap(), rows); err != nil {
		return failed(ctx, doing, err)
	}
	_, refused := run(ctx, pc, batch)
	// Where this fails the connection is broken or still in its transaction, and the pool destroys it on release.
	_, err = pc.Exec(ctx, "ROLLBACK").ReadAll()
	if refused != nil {
		return failed(ctx, doing, refused)
	}
	if err != nil {
		return failed(ctx, doing, err)
	}
	return nil
}

// run sends the batch and returns the rows its INSERTs affected. The server runs a batch up to its Sync as one
// transaction, unless a BEGIN in it says otherwise; the commit's own failure is only known from Close.
func run(ctx context.Context, pc *pgconn.PgConn, batch *pgconn.Batch) (int, error) {
	results := pc.ExecBatch(ctx, batch)
	affected := 0
	for results.NextResult() {
		tag, err := results.ResultReader().Close()
		if err == nil && tag.Insert() {
			affected += int(tag.RowsAffected())
		}
	}
	if err := results.Close(); err != nil {
		return 0, err
	}
	return affected, nil
}

func insert(batch *pgconn.Batch, types *pgtype.Map, rows []Row) error {
	for rest := inOrder(rows); len(rest) > 0; {
		n := chunk(rest)
		p, err := columnsOf(rest[:n]).params(types)
		if err != nil {
			return err
		}
		batch.ExecParams(insertSQL, p.values, p.oids, p.formats, nil)
		rest = rest[n:]
	}
	return nil
}

func advance(batch *pgconn.Batch, types *pgtype.Map, group string, positions []Position) error {
	last := collapse(positions)
	if len(last) == 0 {
		return nil
	}
	n := len(last)
	topicIDs, partitions := make(pgtype.FlatArray[pgtype.UUID], n), make(pgtype.FlatArray[int32], n)
	epochs, nexts := make(pgtype.FlatArray[int64], n), make(pgtype.FlatArray[int64], n)
	for i, p := range last {
		topicIDs[i] = pgtype.UUID{Bytes: p.TopicID, Valid: true}
		partitions[i], epochs[i], nexts[i] = p.Partition, p.Epoch, p.Next
	}
	p := newParams(types, 5)
	p.add(pgtype.TextOID, group, len(group))
	p.add(pgtype.UUIDArrayOID, topicIDs, 20*n)
	p.add(pgtype.Int4ArrayOID, partitions, 8*n)
	p.add(pgtype.Int8ArrayOID, epochs, 12*n)
	p.add(pgtype.Int8ArrayOID, nexts, 12*n)
	if p.err != nil {
		return p.err
	}
	batch.ExecParams(advanceSQL, p.values, p.oids, p.formats, nil)
	return nil
}

// collapse returns each partition once, with the highest Next, sorted by topic id and partition: the order in which every
// writer locks them. Positions of one partition under different epochs stay apart; one of them will be fenced.
func collapse(positions []Position) []Position {
	sorted := slices.SortedFunc(slices.Values(positions), func(a, b Position) int {
		return cmp.Or(slices.Compare(a.TopicID[:], b.TopicID[:]), cmp.Compare(a.Partition, b.Partition),
			cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(b.Next, a.Next))
	})
	return slices.CompactFunc(sorted, func(a, b Position) bool {
		return a.TopicID == b.TopicID && a.Partition == b.Partition && a.Epoch == b.Epoch
	})
}
