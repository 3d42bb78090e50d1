package deadletter

// Depth says how much a dead-letter topic holds. Outstanding is the sum of the partitions' offset ranges: no less than the
// letters there are, and more where the topic is compacted or was written in transactions. It tells a handful from a flood.
type Depth struct {
	Topic                   string    `json:"topic"`
	Partitions              []DepthOf `json:"partitions"`
	Outstanding             int64     `json:"outstanding"`
	OutstandingIsUpperBound bool      `json:"outstandingIsUpperBound"` // always true
	Replay                  Limits    `json:"replay"`
}

// DepthOf is one partition: the first offset kept, and the one that the next record will have.
type DepthOf struct {
	Partition int32 `json:"partition"`
	Earliest  int64 `json:"earliest"`
	Latest    int64 `json:"latest"`
}

// Limits are those in force for listings and replays.
type Limits struct {
	Enabled     bool   `json:"enabled"`     // whether a replay may be committed
	MaxRecords  int    `json:"maxRecords"`  // of one request, and offsets read of each partition
	MaxAttempts int    `json:"maxAttempts"` // replays that one record may survive
	PollTimeout string `json:"pollTimeout"` // of one read, such as 5s
}

// NewDepth sums up the partitions.
func NewDepth(topic string, partitions []DepthOf, limits Limits) Depth {
	d := Depth{Topic: topic, Partitions: partitions, OutstandingIsUpperBound: true, Replay: limits}
	for _, p := range partitions {
		d.Outstanding += max(0, p.Latest-p.Earliest)
	}
	return d
}
