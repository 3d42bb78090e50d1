package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// admin bounds one administrative call, so that a broker that is away answers an await with an error.
func (s *scene) admin(do func(context.Context, *kadm.Client) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return do(ctx, kadm.NewClient(s.client))
}

func (s *scene) createTopic(ts *testscript.TestScript, name string, partitions int32) {
	ts.Check(s.eventually(func(ctx context.Context, admin *kadm.Client) error {
		_, err := admin.CreateTopic(ctx, partitions, -1, nil, name)
		return err
	}))
}

// eventually tries again what a broker refuses for a moment: a group whose last member is leaving, a topic that is being
// deleted.
func (s *scene) eventually(do func(context.Context, *kadm.Client) error) error {
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(patience); ; <-poll.C {
		if err := s.admin(do); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// broker: broker kill|start.
func (s *scene) broker(ts *testscript.TestScript, neg bool, args []string) {
	refuseNeg(ts, neg)
	if s.kafka == nil {
		ts.Fatalf("the broker is not this script's own: services -own-kafka")
	}
	switch one(ts, args) {
	case "kill":
		s.kafka.Kill()
	case "start":
		s.kafka.Start()
	default:
		ts.Fatalf("broker kill|start")
	}
}

// send: send [-t TOPIC] [-p PARTITION] [-k KEY] [-H NAME=VALUE]... [-hex NAME=HEX]... [-n COUNT] [-abort]
// (-Z | -file FILE | -x HEX | -pad BYTES | VALUE).
func (s *scene) send(ts *testscript.TestScript, neg bool, args []string) {
	refuseNeg(ts, neg)
	o := sending{record: kgo.Record{Topic: ts.Getenv("KAFKA_TOPIC")}, count: 1}
	for len(args) > 0 {
		switch flag := args[0]; {
		case flag == "-Z":
			args = args[1:]
		case flag == "-abort":
			o.abort, args = true, args[1:]
		case strings.HasPrefix(flag, "-") && len(args) > 1:
			o.flag(ts, flag, args[1])
			args = args[2:]
		default:
			o.record.Value, args = []byte(one(ts, args)), nil
		}
	}
	ts.Check(s.produce(o.record, o.count, o.abort))
}

// sending is what one send was told.
type sending struct {
	record kgo.Record
	count  int
	abort  bool
}

func (o *sending) flag(ts *testscript.TestScript, flag, value string) {
	name, text, _ := strings.Cut(value, "=")
	header := func(raw []byte) {
		o.record.Headers = append(o.record.Headers, kgo.RecordHeader{Key: name, Value: raw})
	}
	switch flag {
	case "-t":
		o.record.Topic = value
	case "-p":
		o.record.Partition = int32(number(ts, value))
	case "-k":
		o.record.Key = []byte(value)
	case "-H":
		header([]byte(text))
	case "-hex":
		header(fromHex(ts, text))
	case "-n":
		o.count = int(number(ts, value))
	case "-file":
		o.record.Value = []byte(strings.TrimSuffix(ts.ReadFile(value), "\n"))
	case "-pad":
		o.record.Value = padding(int(number(ts, value)))
	case "-x":
		o.record.Value = fromHex(ts, value)
	default:
		ts.Fatalf("unknown argument %q", flag)
	}
}

func fromHex(ts *testscript.TestScript, text string) []byte {
	raw, err := hex.DecodeString(text)
	ts.Check(err)
	return raw
}

// padding is bytes that no compression makes small, no text, and no event.
func padding(size int) []byte {
	r, raw := rand.New(rand.NewPCG(1, 2)), make([]byte, size)
	for i := range raw {
		raw[i] = byte(r.IntN(256))
	}
	return raw
}

func (s *scene) produce(record kgo.Record, count int, abort bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	records := make([]*kgo.Record, count)
	for i := range records {
		copied := record
		records[i] = &copied
	}
	if !abort {
		return s.client.ProduceSync(ctx, records...).FirstErr()
	}
	client, err := kgo.NewClient(append(s.client.Opts(), kgo.TransactionalID(record.Topic))...)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		return err
	}
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return err
	}
	if err := client.EndTransaction(ctx, kgo.TryAbort); err != nil {
		return err
	}
	return s.awaitMarker(record)
}

// awaitMarker waits for the transaction's end in the log, which the broker writes after it has answered.
func (s *scene) awaitMarker(record kgo.Record) error {
	return s.eventually(func(ctx context.Context, admin *kadm.Client) error {
		stable, err := admin.ListCommittedOffsets(ctx, record.Topic)
		if err != nil {
			return err
		}
		ends, err := admin.ListEndOffsets(ctx, record.Topic)
		if err != nil {
			return err
		}
		at, _ := stable.Lookup(record.Topic, record.Partition)
		if end, _ := ends.Lookup(record.Topic, record.Partition); at.Offset != end.Offset {
			return fmt.Errorf("a transaction is open at %d, end %d", at.Offset, end.Offset)
		}
		return nil
	})
}

// resetOffsets: reset-offsets OFFSET|end, in every partition, as kafka-consumer-groups does it.
func (s *scene) resetOffsets(ts *testscript.TestScript, neg bool, args []string) {
	refuseNeg(ts, neg)
	where := one(ts, args)
	at := -1
	if where != "end" {
		at = int(number(ts, where))
	}
	topic := ts.Getenv("KAFKA_TOPIC")
	ts.Check(s.eventually(func(ctx context.Context, admin *kadm.Client) error {
		ends, err := admin.ListEndOffsets(ctx, topic)
		if err != nil {
			return err
		}
		var offsets kadm.Offsets
		ends.Each(func(o kadm.ListedOffset) {
			to := int64(at)
			if at < 0 {
				to = o.Offset
			}
			offsets.AddOffset(o.Topic, o.Partition, to, -1)
		})
		return admin.CommitAllOffsets(ctx, ts.Getenv("KAFKA_GROUP_ID"), offsets)
	}))
}

// deleteOffsets: delete-offsets, of the whole group.
func (s *scene) deleteOffsets(ts *testscript.TestScript, neg bool, _ []string) {
	refuseNeg(ts, neg)
	ts.Check(s.eventually(func(ctx context.Context, admin *kadm.Client) error {
		_, err := admin.DeleteGroup(ctx, ts.Getenv("KAFKA_GROUP_ID"))
		return err
	}))
}

// recreateTopic: recreate-topic, with the partitions it had.
func (s *scene) recreateTopic(ts *testscript.TestScript, neg bool, _ []string) {
	refuseNeg(ts, neg)
	topic := ts.Getenv("KAFKA_TOPIC")
	partitions := int32(0)
	ts.Check(s.admin(func(ctx context.Context, admin *kadm.Client) error {
		topics, err := admin.ListTopics(ctx, topic)
		if err != nil {
			return err
		}
		partitions = int32(len(topics[topic].Partitions))
		_, err = admin.DeleteTopic(ctx, topic)
		return err
	}))
	s.createTopic(ts, topic, partitions)
}

// prune: prune OFFSET, in every partition.
func (s *scene) prune(ts *testscript.TestScript, neg bool, args []string) {
	refuseNeg(ts, neg)
	before := number(ts, one(ts, args))
	ts.Check(s.admin(func(ctx context.Context, admin *kadm.Client) error {
		ends, err := admin.ListEndOffsets(ctx, ts.Getenv("KAFKA_TOPIC"))
		if err != nil {
			return err
		}
		var offsets kadm.Offsets
		ends.Each(func(o kadm.ListedOffset) { offsets.AddOffset(o.Topic, o.Partition, before, -1) })
		deleted, err := admin.DeleteRecords(ctx, offsets)
		if err != nil {
			return err
		}
		return deleted.Error()
	}))
}
