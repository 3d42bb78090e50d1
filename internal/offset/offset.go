// Package offset decides where a consumer starts and how far behind it is. Pure: offsets in, offsets out.
package offset

// Commit is what the group committed for a partition, as Kafka keeps it.
type Commit struct {
	At       int64  // next offset to read; negative: never committed
	Metadata string // what the committer wrote beside it; ours is the topic's id
}

// Log is a partition's log as it is now: offsets of the oldest record kept and of the next to be written.
type Log struct{ Start, End int64 }

// Origin says what a start position rests on.
type Origin string

// The origins, in the order in which they are tried.
const (
	FromCommit     Origin = "commit"
	FromCheckpoint Origin = "checkpoint"
	FromEarliest   Origin = "earliest"
)

// Start is a partition's start position.
type Start struct {
	At     int64
	Origin Origin
	// Gap is the number of offsets between where reading should have gone on and the oldest record kept: records that
	// retention took away unread.
	Gap int64
	// Foreign says that the commit was dropped because it was made for an earlier topic of the same name.
	Foreign bool
}

// Resolve decides where to start. Kafka's commit is obeyed, so that an outside reset of the group's offsets counts,
// unless it was made for another topic of the same name (its metadata names another topic id) or lies beyond the log's
// end, as only such a commit does. Without a commit it is this topic id's checkpoint (negative: none), and without that
// the oldest record. Never the newest: that would skip in silence whatever came before.
func Resolve(commit Commit, topicID string, checkpoint int64, log Log) Start {
	foreign := commit.At >= 0 && (commit.Metadata != "" && isTopicID(commit.Metadata) && commit.Metadata != topicID || commit.At > log.End)
	switch {
	case commit.At >= 0 && !foreign:
		return within(Start{At: commit.At, Origin: FromCommit}, log)
	case checkpoint >= 0 && checkpoint <= log.End:
		return within(Start{At: checkpoint, Origin: FromCheckpoint, Foreign: foreign}, log)
	default:
		return Start{At: log.Start, Origin: FromEarliest, Foreign: foreign}
	}
}

func within(s Start, log Log) Start {
	if s.At < log.Start {
		s.Gap, s.At = log.Start-s.At, log.Start
	}
	return s
}

// isTopicID reports whether text looks like the 22 characters in which Kafka writes a topic's id, so that another tool's
// metadata does not make its commit foreign.
func isTopicID(text string) bool { return len(text) == 22 }

// Lag returns how many offsets lie between a commit and the log's end. ok is false for a partition that was never
// committed: its lag is unknown, and neither zero nor the whole log. A commit beyond the end counts as caught up.
func Lag(committed int64, log Log) (lag int64, ok bool) {
	if committed < 0 {
		return 0, false
	}
	return max(0, log.End-max(committed, log.Start)), true
}

// Ahead returns by how much a checkpoint is ahead of Kafka's commit: what an outside reset of the offsets, or commits
// that did not get through, leave. Zero when either is unknown.
func Ahead(checkpoint, committed int64) int64 {
	if checkpoint < 0 || committed < 0 {
		return 0
	}
	return max(0, checkpoint-committed)
}
