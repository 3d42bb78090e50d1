package pg

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// Range is the offsets [From, Until) of one partition.
type Range struct {
	Partition   int32
	From, Until int64
}

const originsSQL = `
SELECT e.origin_partition, e.origin_offset
  FROM events.cloud_event e
  JOIN unnest($2::int[], $3::bigint[], $4::bigint[]) r(partition, lo, hi)
    ON e.origin_partition = r.partition AND e.origin_offset >= r.lo AND e.origin_offset < r.hi
 WHERE e.origin_topic_id = $1`

// Origins calls each for every row that was made of a record of the topic within the ranges, one row after another as the
// server sends them, in no order. A row names the record that came first; a duplicate of its event is in no row. There is
// no index on origins: it reads the whole table. An error of each ends it and is returned.
func (d *DB) Origins(ctx context.Context, topicID [16]byte, ranges []Range, each func(partition int32, offset int64) error) error {
	partitions, from, until := make([]int32, len(ranges)), make([]int64, len(ranges)), make([]int64, len(ranges))
	for i, r := range ranges {
		partitions[i], from[i], until[i] = r.Partition, r.From, r.Until
	}
	rows, err := d.pool.Query(ctx, originsSQL, topicID, partitions, from, until)
	if err != nil {
		return failed(ctx, "read origins", err)
	}
	defer rows.Close()
	var partition int32
	var offset int64
	for rows.Next() {
		if err := rows.Scan(&partition, &offset); err != nil {
			return fmt.Errorf("read origins: %w", err)
		}
		if err := each(partition, offset); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return failed(ctx, "read origins", err)
	}
	return nil
}

// Stored is where the row of an identity came from.
type Stored struct {
	EventUID  int64
	TopicID   [16]byte // zero where the row names no topic
	Partition int32    // -1 where the row names no record
	Offset    int64    // -1 where the row names no record
	SHA256    []byte
}

const lookupSQL = `
SELECT i.n, e.event_uid, e.origin_topic_id, coalesce(e.origin_partition, -1), coalesce(e.origin_offset, -1), e.payload_sha256
  FROM unnest($1::timestamptz[], $2::text[], $3::text[]) WITH ORDINALITY i(occurred_at, source, id, n)
  JOIN events.cloud_event e
    ON e.occurred_at = i.occurred_at AND e.ce_source = i.source AND e.ce_id = i.id`

// Lookup returns the rows of the identities, nil where there is none, in the order asked.
func (d *DB) Lookup(ctx context.Context, identities []Identity) ([]*Stored, error) {
	times, sources, ids := make([]time.Time, len(identities)), make([]string, len(identities)), make([]string, len(identities))
	for i, id := range identities {
		times[i], sources[i], ids[i] = id.OccurredAt, id.Source, id.ID
	}
	rows, err := d.pool.Query(ctx, lookupSQL, times, sources, ids)
	if err != nil {
		return nil, failed(ctx, "look up rows", err)
	}
	defer rows.Close()
	found := make([]*Stored, len(identities))
	for rows.Next() {
		var n int64
		var topicID pgtype.UUID
		var s Stored
		if err := rows.Scan(&n, &s.EventUID, &topicID, &s.Partition, &s.Offset, &s.SHA256); err != nil {
			return nil, fmt.Errorf("look up rows: %w", err)
		}
		s.TopicID = topicID.Bytes
		found[n-1] = &s
	}
	if err := rows.Err(); err != nil {
		return nil, failed(ctx, "look up rows", err)
	}
	return found, nil
}

// Counts are how many rows there are.
type Counts struct {
	Events      int64 // rows of events
	Identities  int64 // different pairs of source and id: fewer where one came again with another time
	DeadLetters int64 // letters in the index
}

const countsSQL = `
SELECT (SELECT count(*) FROM events.cloud_event),
       (SELECT count(*) FROM (SELECT DISTINCT ce_source, ce_id FROM events.cloud_event) i),
       (SELECT count(*) FROM events.dead_letter)`

// Counts counts the rows, reading the whole table.
func (d *DB) Counts(ctx context.Context) (Counts, error) {
	var c Counts
	if err := d.pool.QueryRow(ctx, countsSQL).Scan(&c.Events, &c.Identities, &c.DeadLetters); err != nil {
		return Counts{}, failed(ctx, "count rows", err)
	}
	return c, nil
}
