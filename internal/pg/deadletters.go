package pg

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// DeadLetter is one message of the dead-letter topic as the index keeps it.
type DeadLetter struct {
	Ref          string // of the letter; of the message itself where that is no readable letter
	DLQTopicID   [16]byte
	DLQPartition int32
	DLQOffset    int64

	OriginTopic     string // "" where the message doesn't say; then the other three are not kept
	OriginTopicID   [16]byte
	OriginPartition int32
	OriginOffset    int64

	Pipeline, Reason, Detail, Fingerprint string
	EventID, EventType, EventSource       string // "" where unreadable

	Attempt  int    // how often the record was replayed before it failed
	ReplayOf string // the ref it was a replay of, or ""
	Readable bool
	Problem  string // why it is not readable

	Part, Parts int       // from 1; 1 of 1 for a letter in one message
	Seen        time.Time // the message's timestamp
}

// The first part stands for its letter. It is a new copy where its coordinates lie behind those that are stored, so that
// reading the topic again counts nothing twice; copies of one letter lie in one partition, except where partitions were
// added, and then their time decides. What was decided about a letter (state, actor) stays.
const deadLetterSQL = `
INSERT INTO events.dead_letter AS d
       (ref, dlq_topic_id, dlq_partition, dlq_offset, origin_topic, origin_topic_id, origin_partition, origin_offset,
        pipeline, reason, detail, fingerprint, event_id, event_type, event_source, attempt, replay_of, readable, problem,
        parts, parts_have, first_seen, last_seen)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, ARRAY[$21], $22, $22)
    ON CONFLICT (ref) DO UPDATE
   SET (dlq_topic_id, dlq_partition, dlq_offset, pipeline, reason, detail, fingerprint, event_id, event_type, event_source,
        attempt, replay_of, readable, problem, parts, copies) = (SELECT
        excluded.dlq_topic_id, excluded.dlq_partition, excluded.dlq_offset, excluded.pipeline, excluded.reason,
        excluded.detail, excluded.fingerprint, coalesce(excluded.event_id, d.event_id),
        coalesce(excluded.event_type, d.event_type), coalesce(excluded.event_source, d.event_source),
        excluded.attempt, excluded.replay_of, excluded.readable, excluded.problem, excluded.parts, d.copies + 1),
       last_seen = greatest(d.last_seen, excluded.last_seen),
       parts_have = array(SELECT DISTINCT p FROM unnest(d.parts_have || excluded.parts_have) p ORDER BY p)
 WHERE $21 = 1 AND (d.dlq_topic_id <> excluded.dlq_topic_id
       OR d.dlq_partition = excluded.dlq_partition AND d.dlq_offset < excluded.dlq_offset
       OR d.dlq_partition <> excluded.dlq_partition AND d.last_seen < excluded.last_seen)`

// A further part only adds itself to its letter, which adding it again leaves as it is.
const deadLetterPartSQL = `
UPDATE events.dead_letter d
   SET parts_have = array(SELECT DISTINCT p FROM unnest(d.parts_have || ARRAY[$2]) p ORDER BY p),
       last_seen = greatest(d.last_seen, $3)
 WHERE ref = $1 AND $2 <> ALL (d.parts_have)`

// WriteDeadLetters brings the messages into the index and moves the checkpoints in one transaction, under the rule of
// Write: ErrFenced where a partition is claimed under another epoch. Writing a message again changes nothing.
func (d *DB) WriteDeadLetters(ctx context.Context, group string, letters []DeadLetter, positions []Position) error {
	const doing = "write dead-letter index and checkpoint"
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return failed(ctx, doing, err)
	}
	defer conn.Release()
	batch := &pgconn.Batch{}
	types := conn.Conn().TypeMap()
	if err := advance(batch, types, group, positions); err != nil {
		return failed(ctx, doing, err)
	}
	// By ref, so that two writers never wait for one another, and then as the messages lie in the topic.
	sorted := slices.SortedStableFunc(slices.Values(letters), func(a, b DeadLetter) int {
		return cmp.Or(cmp.Compare(a.Ref, b.Ref), cmp.Compare(a.DLQPartition, b.DLQPartition), cmp.Compare(a.DLQOffset, b.DLQOffset))
	})
	for i := range sorted {
		if err := index(batch, types, &sorted[i]); err != nil {
			return failed(ctx, doing, err)
		}
	}
	if _, err := run(ctx, conn.Conn().PgConn(), batch); err != nil {
		return failed(ctx, doing, err)
	}
	return nil
}

func index(batch *pgconn.Batch, types *pgtype.Map, l *DeadLetter) error {
	p := letterParams(types, l)
	if p.err != nil {
		return p.err
	}
	batch.ExecParams(deadLetterSQL, p.values, p.oids, p.formats, nil)
	if l.Part <= 1 {
		return nil
	}
	p = newParams(types, 3)
	p.text(l.Ref)
	p.add(pgtype.Int4OID, int32(l.Part), 4)
	p.add(pgtype.TimestamptzOID, l.Seen, 8)
	batch.ExecParams(deadLetterPartSQL, p.values, p.oids, p.formats, nil)
	return p.err
}

func letterParams(types *pgtype.Map, l *DeadLetter) *params {
	known := l.OriginTopic != ""
	p := newParams(types, 22)
	p.text(l.Ref)
	p.add(pgtype.UUIDOID, pgtype.UUID{Bytes: l.DLQTopicID, Valid: true}, 16)
	p.add(pgtype.Int4OID, l.DLQPartition, 4)
	p.add(pgtype.Int8OID, l.DLQOffset, 8)
	p.text(l.OriginTopic)
	p.add(pgtype.UUIDOID, pgtype.UUID{Bytes: l.OriginTopicID, Valid: known && l.OriginTopicID != [16]byte{}}, 16)
	p.add(pgtype.Int4OID, pgtype.Int4{Int32: l.OriginPartition, Valid: known}, 4)
	p.add(pgtype.Int8OID, pgtype.Int8{Int64: l.OriginOffset, Valid: known}, 8)
	for _, s := range []string{l.Pipeline, l.Reason, l.Detail, l.Fingerprint} {
		p.text(s)
	}
	for _, s := range []string{l.EventID, l.EventType, l.EventSource} {
		p.optional(s)
	}
	p.add(pgtype.Int4OID, int32(l.Attempt), 4)
	p.optional(l.ReplayOf)
	p.add(pgtype.BoolOID, l.Readable, 1)
	p.text(l.Problem)
	p.add(pgtype.Int4OID, int32(max(l.Parts, 1)), 4)
	p.add(pgtype.Int4OID, int32(max(l.Part, 1)), 4)
	p.add(pgtype.TimestamptzOID, l.Seen, 8)
	return p
}

func (p *params) text(s string) { p.add(pgtype.TextOID, clip(s), len(s)) }

func (p *params) optional(s string) {
	p.add(pgtype.TextOID, pgtype.Text{String: clip(s), Valid: s != ""}, len(s))
}
