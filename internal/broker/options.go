package broker

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"appliance/internal/intake"
	"appliance/internal/offset"
)

// Checkpoints is where the consumer's progress is kept beside the rows. Claim makes this process the owner of a
// partition's checkpoint and returns the epoch under which it may write, and the stored next offset (-1: none).
type Checkpoints interface {
	Claim(ctx context.Context, tp intake.TP, topicID [16]byte) (epoch, next int64, err error)
}

// Tuning is what may be tuned of the client without touching what is lost or kept. A zero field leaves the default.
type Tuning struct {
	ClientID, Rack         string        // "": the cluster's client id; no rack
	FetchMinBytes          int32         // 1
	FetchMaxBytes          int32         // 4 MiB
	FetchMaxPartitionBytes int32         // a quarter of FetchMaxBytes, at least 1 MiB
	FetchMaxWait           time.Duration // 500 ms
	SessionTimeout         time.Duration // 10 s
	HeartbeatInterval      time.Duration // a quarter of SessionTimeout
	RebalanceTimeout       time.Duration // 60 s: how long a rebalance waits for this member
	RequestTimeout         time.Duration // 10 s, beyond what a request itself asks the broker to wait
	MetadataMaxAge         time.Duration // 5 min
	RetryBackoff           time.Duration // the client's own, which grows from 250 ms to 2.5 s
}

// Observer is told what happens to a subscription. Its methods must not wait.
type Observer interface {
	Started(tp intake.TP, start offset.Start)                 // reading begins
	Claimed(tp intake.TP, epoch, ahead int64)                 // ahead: how far the checkpoint is beyond Kafka's commit
	Unclaimed(tp intake.TP, since time.Duration, cause error) // the claim is not back yet; cause is of its last try
	// Skipped: Kafka's commit, which is obeyed, is beyond the checkpoint. Somebody moved the group's offsets forward, or the
	// database was restored to an earlier state.
	Skipped(tp intake.TP, records int64)
	Gap(tp intake.TP, records int64) // retention took records unread
	Recreated(topic string)          // the topic has a new id
	Revoked(tp intake.TP)            // owned no more
	CommitFailed(err error)          // offsets were not committed this time; nothing is lost
}

// Options of a subscription. Acknowledgement is not among them: offsets are committed once their records are durable.
type Options struct {
	Group      string
	Topics     []string
	InstanceID string // static membership; "" for none
	Rule       intake.Rule

	CommitMaxBatch int           // records that are durable before offsets are committed; 0 means 1,000
	CommitInterval time.Duration // and the longest they wait for that; 0 means 5 s
	RevokeWait     time.Duration // how long a partition's batch may finish when the partition goes; 0 means 10 s
	QueueRecords   int           // records held in memory before polling stops; 0 means one full batch a lane

	ClaimWarning time.Duration // how long a claim may take before it is said, and said again; 0 means 30 s

	Tuning      Tuning
	Checkpoints Checkpoints // nil: progress is in Kafka only
	Observer    Observer
	Now         func() time.Time
}

func (o Options) withDefaults() Options {
	o.CommitMaxBatch = orDefault(o.CommitMaxBatch, 1000)
	o.CommitInterval = orDefault(o.CommitInterval, 5*time.Second)
	o.RevokeWait = orDefault(o.RevokeWait, 10*time.Second)
	o.ClaimWarning = orDefault(o.ClaimWarning, 30*time.Second)
	o.QueueRecords = orDefault(o.QueueRecords, o.Rule.Lanes*max(o.Rule.Size, o.Rule.MaxSize))
	t := &o.Tuning
	t.FetchMaxBytes = orDefault(t.FetchMaxBytes, 4<<20)
	t.FetchMaxPartitionBytes = orDefault(t.FetchMaxPartitionBytes, max(1<<20, t.FetchMaxBytes/4))
	t.FetchMaxWait = orDefault(t.FetchMaxWait, 500*time.Millisecond)
	t.SessionTimeout = orDefault(t.SessionTimeout, 10*time.Second)
	t.HeartbeatInterval = orDefault(t.HeartbeatInterval, t.SessionTimeout/4)
	return o
}

// groupOptions: the order of the fixed ones does not matter, but each is a correctness property and no tuning.
func (s *Subscription) groupOptions() []kgo.Opt {
	opts := []kgo.Opt{
		kgo.ConsumerGroup(s.opts.Group), kgo.ConsumeTopics(s.opts.Topics...),
		kgo.DisableAutoCommit(),                           // an offset is a receipt for a durable record
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), // latest would skip in silence what came before
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),      // an aborted record never was
		kgo.KeepControlRecords(),                          // how far the log was read, also where no record is left
		kgo.Balancers(kgo.CooperativeStickyBalancer()),    // a rebalance takes only what moves
		kgo.BlockRebalanceOnPoll(),                        // queues and ownership change in turn
		kgo.AdjustFetchOffsetsFn(s.resolve),
		kgo.OnPartitionsAssigned(s.assigned), kgo.OnPartitionsRevoked(s.revoked), kgo.OnPartitionsLost(s.lost),
		kgo.MaxConcurrentFetches(1),
	}
	if s.opts.InstanceID != "" {
		opts = append(opts, kgo.InstanceID(s.opts.InstanceID))
	}
	return append(opts, s.opts.Tuning.options()...)
}

// brokerReadBytes is the client's own bound of one answer, which must not be below what a fetch asks for.
const brokerReadBytes = 100 << 20

func (t Tuning) options() []kgo.Opt {
	opts := []kgo.Opt{
		kgo.SessionTimeout(t.SessionTimeout), kgo.HeartbeatInterval(t.HeartbeatInterval),
		kgo.FetchMaxWait(t.FetchMaxWait), kgo.FetchMaxBytes(t.FetchMaxBytes), kgo.FetchMaxPartitionBytes(t.FetchMaxPartitionBytes),
		kgo.BrokerMaxReadBytes(max(brokerReadBytes, t.FetchMaxBytes)),
	}
	add := func(given bool, o kgo.Opt) {
		if given {
			opts = append(opts, o)
		}
	}
	add(t.ClientID != "", kgo.ClientID(t.ClientID)) // after the cluster's: the last one counts
	add(t.Rack != "", kgo.Rack(t.Rack))
	add(t.FetchMinBytes > 0, kgo.FetchMinBytes(t.FetchMinBytes))
	add(t.RebalanceTimeout > 0, kgo.RebalanceTimeout(t.RebalanceTimeout))
	add(t.RequestTimeout > 0, kgo.RequestTimeoutOverhead(t.RequestTimeout))
	add(t.RetryBackoff > 0, kgo.RetryBackoffFn(func(int) time.Duration { return t.RetryBackoff }))
	if t.MetadataMaxAge > 0 { // the client wants the least age below it
		opts = append(opts, kgo.MetadataMaxAge(t.MetadataMaxAge), kgo.MetadataMinAge(min(t.MetadataMaxAge, 2500*time.Millisecond)))
	}
	return opts
}
