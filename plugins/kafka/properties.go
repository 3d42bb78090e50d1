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
	ReadCommitted          bool // isolation.level = read_committed
	ConsumerProtocol       bool // group.protocol = consumer (KIP-848)
}

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
		"isolation.level":           oneOf("read_uncommitted", "read_committed", func(p *Properties, v bool) { p.ReadCommitted = v }),
		"group.protocol":            oneOf("classic", "consumer", func(p *Properties, v bool) { p.ConsumerProtocol = v }),
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

// oneOf takes two words, of which the second sets true.
func oneOf(no, yes string, set func(*Properties, bool)) setter {
	return func(p *Properties, v string) error {
		if v != no && v != yes {
			return errors.New("must be " + no + " or " + yes)
		}
		set(p, v == yes)
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
	return p, errors.Join(errs...)
}

// notTunable gives the reason. A refused name is no misspelling, however near it is to another.
func notTunable(name string, refused map[string]string) string {
	if why, ok := refused[name]; ok {
		return "refused: " + why
	}
	return "is no property that is known here"
}
