package kafka

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// Properties are the properties of a Kafka consumer that may be tuned. A zero field leaves the client's default.
type Properties struct {
	ClientID, ClientRack   string
	FetchMinBytes          int32
	FetchMaxBytes          int32
	FetchMaxPartitionBytes int32
	FetchMaxWait           time.Duration
	SessionTimeout         time.Duration
	HeartbeatInterval      time.Duration
	RebalanceTimeout       time.Duration // max.poll.interval.ms: how long a rebalance waits for this member
	RequestTimeout         time.Duration
	MetadataMaxAge         time.Duration
	RetryBackoff           time.Duration
}

// Bounds of the client, which would refuse what is beyond them when it is opened.
const (
	minTimeout   = 100 * time.Millisecond // of session, rebalance and request
	maxRequest   = 15 * time.Minute
	maxFetch     = 1 << 30
	minFetchWait = 10 * time.Millisecond
	maxMetadata  = time.Hour
)

// PropertyNames returns the names that may be set, sorted.
func PropertyNames() []string { return slices.Sorted(maps.Keys(setters())) }

// RefusedProperties returns the names that are refused and why: each decides correctness or is an argument of its own.
func RefusedProperties() map[string]string {
	const (
		commit = "offsets are committed after the batch is durable, never on a timer: auto-commit would acknowledge what is not stored"
		acks   = "acks=all and idempotence are fixed: a dead letter acknowledged before it is replicated is less durable than its record"
		secure = "belongs to the kafka resource"
	)
	return map[string]string{
		"enable.auto.commit": commit, "auto.commit.interval.ms": commit,
		"auto.offset.reset": "the reset is fixed to the earliest record still held: latest would lose what was published before; see start",
		"acks":              acks, "enable.idempotence": acks, "transactional.id": acks, "retries": acks,
		"max.in.flight.requests.per.connection": acks,
		"max.poll.records":                      "is batch.size",
		"group.id":                              "is group",
		"group.instance.id":                     "is instance_id",
		"bootstrap.servers":                     "is brokers of the kafka resource",
		"security.protocol":                     secure, "sasl.mechanism": secure, "sasl.jaas.config": secure,
		"partition.assignment.strategy": "is fixed to cooperative-sticky: an eager one stops every lane at each rebalance",
	}
}

type setter func(p *Properties, value string) error

func setters() map[string]setter {
	return map[string]setter{
		"client.id":                 text(func(p *Properties, v string) { p.ClientID = v }),
		"client.rack":               text(func(p *Properties, v string) { p.ClientRack = v }),
		"fetch.min.bytes":           bytesOf(func(p *Properties, v int32) { p.FetchMinBytes = v }),
		"fetch.max.bytes":           bytesOf(func(p *Properties, v int32) { p.FetchMaxBytes = v }),
		"max.partition.fetch.bytes": bytesOf(func(p *Properties, v int32) { p.FetchMaxPartitionBytes = v }),
		"fetch.max.wait.ms":         millis(func(p *Properties, v time.Duration) { p.FetchMaxWait = v }),
		"session.timeout.ms":        millis(func(p *Properties, v time.Duration) { p.SessionTimeout = v }),
		"heartbeat.interval.ms":     millis(func(p *Properties, v time.Duration) { p.HeartbeatInterval = v }),
		"max.poll.interval.ms":      millis(func(p *Properties, v time.Duration) { p.RebalanceTimeout = v }),
		"request.timeout.ms":        millis(func(p *Properties, v time.Duration) { p.RequestTimeout = v }),
		"metadata.max.age.ms":       millis(func(p *Properties, v time.Duration) { p.MetadataMaxAge = v }),
		"retry.backoff.ms":          millis(func(p *Properties, v time.Duration) { p.RetryBackoff = v }),
		"isolation.level": only("read_committed", "is fixed to read_committed: a record of an aborted transaction never was, "+
			"and would be stored as an event"),
		"group.protocol": only("classic", "is fixed to classic with cooperative-sticky: the claims and commits of partitions "+
			"that move are proven under it, and not under the protocol of KIP-848"),
	}
}

func text(set func(*Properties, string)) setter {
	return func(p *Properties, v string) error {
		if v == "" {
			return errors.New("must not be empty")
		}
		set(p, v)
		return nil
	}
}

func bytesOf(set func(*Properties, int32)) setter {
	return func(p *Properties, v string) error {
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil || n < 1 {
			return errors.New("must be a number of bytes, 1 to 2147483647")
		}
		set(p, int32(n))
		return nil
	}
}

func millis(set func(*Properties, time.Duration)) setter {
	return func(p *Properties, v string) error {
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil || n < 1 {
			return errors.New("must be a number of milliseconds, 1 to 2147483647")
		}
		set(p, time.Duration(n)*time.Millisecond)
		return nil
	}
}

// only takes the one value that is fixed anyway, so that a file that names it is taken, and gives the reason against others.
func only(fixed, reason string) setter {
	return func(_ *Properties, v string) error {
		if v != fixed {
			return errors.New(reason)
		}
		return nil
	}
}

// readProperties maps each property by its name, and refuses those that are fixed, unknown or malformed.
func readProperties(conf *service.ParsedConfig) (Properties, error) {
	given, err := conf.FieldStringMap(fieldProperties)
	if err != nil {
		return Properties{}, err
	}
	p, errs := Properties{}, []error(nil)
	known, refused := setters(), RefusedProperties()
	for _, name := range slices.Sorted(maps.Keys(given)) {
		path := fieldProperties + "." + name
		set, ok := known[name]
		if !ok {
			errs = append(errs, &ArgumentError{Path: path, Reason: notTunable(name, refused), Known: PropertyNames()})
		} else if err := set(&p, given[name]); err != nil {
			errs = append(errs, &ArgumentError{Path: path, Reason: err.Error()})
		}
	}
	if len(errs) == 0 {
		errs = p.check()
	}
	return p, errors.Join(errs...)
}

// check refuses what the client would refuse at the start of each run, with zero standing for its default.
func (p Properties) check() (errs []error) {
	want := func(ok bool, name, reason string) {
		if !ok {
			errs = append(errs, &ArgumentError{Path: fieldProperties + "." + name, Reason: reason})
		}
	}
	within := func(d, least, most time.Duration) bool { return d == 0 || d >= least && d <= most }
	session := p.SessionTimeout
	if session == 0 {
		session = defaultSession
	}
	want(len(p.ClientID) <= 256, "client.id", "must not be longer than 256 bytes")
	want(len(p.ClientRack) <= 512, "client.rack", "must not be longer than 512 bytes")
	want(p.FetchMaxBytes <= maxFetch, "fetch.max.bytes", "must not be more than 1073741824")
	want(within(p.FetchMaxWait, minFetchWait, time.Minute), "fetch.max.wait.ms", "must be 10 to 60000")
	want(within(p.SessionTimeout, minTimeout, time.Hour), "session.timeout.ms", "must be 100 to 3600000")
	want(p.HeartbeatInterval <= session/2, "heartbeat.interval.ms",
		"must be at most half of session.timeout.ms ("+strconv.FormatInt(session.Milliseconds(), 10)+"): one lost heartbeat would end the membership")
	want(within(p.RebalanceTimeout, minTimeout, 24*time.Hour), "max.poll.interval.ms", "must be 100 to 86400000")
	want(within(p.RequestTimeout, minTimeout, maxRequest), "request.timeout.ms", "must be 100 to 900000")
	want(within(p.MetadataMaxAge, minFetchWait, maxMetadata), "metadata.max.age.ms", "must be 10 to 3600000")
	return errs
}

// defaultSession is the session timeout where none is given.
const defaultSession = 10 * time.Second

// notTunable gives the reason. A refused name is no misspelling, however near it is to another.
func notTunable(name string, refused map[string]string) string {
	if why, ok := refused[name]; ok {
		return "refused: " + why
	}
	return "is no property that is known here"
}
