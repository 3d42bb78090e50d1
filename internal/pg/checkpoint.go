package pg

import (
	"context"
	"fmt"
	"time"
)

// Claim is what an owner has to know of a partition before it reads it.
type Claim struct {
	Epoch int64 // of this claim; every earlier one is fenced from now on
	Next  int64 // the stored checkpoint, where Found
	Found bool  // whether any batch was ever stored for this group, topic id and partition
}

const claimSQL = `
INSERT INTO events.consumer_checkpoint AS c (group_id, topic_id, partition, topic, owner, epoch)
VALUES ($1, $2, $3, $4, $5, 1)
    ON CONFLICT (group_id, topic_id, partition) DO UPDATE
   SET epoch = c.epoch + 1, owner = excluded.owner, topic = excluded.topic, updated_at = clock_timestamp()
RETURNING epoch, next_offset`

// Claim makes owner the only one who may write this partition's checkpoint and returns where it stands. It waits for the
// transaction of an earlier owner, however long that takes: cancel ctx when the partition is lost, and the wait ends on
// the server too.
func (d *DB) Claim(ctx context.Context, group, topic string, topicID [16]byte, partition int32, owner string) (Claim, error) {
	var claim Claim
	var next *int64
	err := d.pool.QueryRow(ctx, claimSQL, group, topicID, partition, topic, owner).Scan(&claim.Epoch, &next)
	if err != nil {
		return Claim{}, failed(ctx, fmt.Sprintf("claim %s/%d", topic, partition), err)
	}
	if next != nil {
		claim.Next, claim.Found = *next, true
	}
	return claim, nil
}

// Checkpoint is one stored row of a group.
type Checkpoint struct {
	Topic     string
	TopicID   [16]byte
	Partition int32
	Next      int64 // where Found
	Found     bool  // false between the first claim and the first batch
	Owner     string
	Epoch     int64
	UpdatedAt time.Time
}

const checkpointsSQL = `
SELECT topic, topic_id, partition, coalesce(next_offset, 0), next_offset IS NOT NULL, owner, epoch, updated_at
  FROM events.consumer_checkpoint
 WHERE group_id = $1
 ORDER BY topic, topic_id, partition`

// Checkpoints returns all that is stored of a group, also of topics that were deleted since.
func (d *DB) Checkpoints(ctx context.Context, group string) ([]Checkpoint, error) {
	rows, err := d.pool.Query(ctx, checkpointsSQL, group)
	if err != nil {
		return nil, failed(ctx, "read checkpoints", err)
	}
	defer rows.Close()
	var all []Checkpoint
	for rows.Next() {
		var c Checkpoint
		if err := rows.Scan(&c.Topic, &c.TopicID, &c.Partition, &c.Next, &c.Found, &c.Owner, &c.Epoch, &c.UpdatedAt); err != nil {
			return nil, fmt.Errorf("read checkpoints: %w", err)
		}
		all = append(all, c)
	}
	if err := rows.Err(); err != nil {
		return nil, failed(ctx, "read checkpoints", err)
	}
	return all, nil
}

// ClearCheckpoints forgets how far the group has come, keeping its claims, and returns in how many partitions. Kafka's
// own offsets stay as they are. The next batch of a running owner stores its position again.
func (d *DB) ClearCheckpoints(ctx context.Context, group string) (int, error) {
	tag, err := d.pool.Exec(ctx, `UPDATE events.consumer_checkpoint SET next_offset = NULL, updated_at = clock_timestamp()
 WHERE group_id = $1 AND next_offset IS NOT NULL`, group)
	if err != nil {
		return 0, failed(ctx, "clear checkpoints", err)
	}
	return int(tag.RowsAffected()), nil
}
