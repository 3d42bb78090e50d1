// Package audit proves the product's promise for a range of offsets: that each record is a row, a duplicate of a row, or
// a dead letter that holds it byte for byte. It reads what is there, through none of the code that wrote it but the codecs,
// joins no group and changes nothing; it may run beside a working pipeline.
//
// The order is the proof's: first how far the group has come, then the rows, then the dead letters, then the records that
// neither accounts for. Whatever lies before the checkpoint was durable before the checkpoint was read.
package audit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"appliance/internal/broker"
	"appliance/internal/event"
	"appliance/internal/intake"
	"appliance/internal/offset"
	"appliance/internal/pg"
)

// Target is the pipeline whose work is audited.
type Target struct {
	Pipeline, Group string
	Topics          []string
	DeadLetterTopic string // "" where the pipeline has none
}

// Sources are where its work lies. The clusters of events and of dead letters may be one.
type Sources struct {
	Events       broker.Cluster
	EventsAdmin  *broker.Admin
	Letters      broker.Cluster
	LettersAdmin *broker.Admin
	Database     *pg.DB
}

// Options narrow an audit. The zero value is the whole of every partition, up to its end when the audit begins, or up to
// where the first transaction began that is open then: what comes behind it cannot be read yet.
type Options struct {
	Partitions     []int32 // empty: all
	From, To       *int64  // offsets in every partition, To excluded
	GroupMustExist bool    // a group without any checkpoint or commit is refused
	AllowPending   bool    // records that are not processed yet contradict nothing
	Deep           bool    // every record is read, and its identity and the hash of its value are compared with its row
	Limit          int     // findings that are listed; 0 means 100

	Now      func() time.Time
	Progress func(stage string, done, total int64) // nil for none; total 0 where it is unknown
}

// part is one partition on the way.
type part struct {
	topic                 string
	topicID               [16]byte
	partition             int32
	log                   offset.Log // as it is
	readable              offset.Log // what a reader of committed records can read of it: less while a transaction is open
	checkpoint, committed *int64
	book                  *book
}

// auditor is one audit on its way.
type auditor struct {
	src    Sources
	target Target
	opts   Options
	ids    map[string][16]byte
	parts  map[intake.TP]*part
}

// Run audits. An error says that it could not be done, an *OptionError that the options name nothing to audit; what it
// found is in the report.
func Run(ctx context.Context, src Sources, target Target, o Options) (*Report, error) {
	began := o.Now()
	if o.Limit == 0 {
		o.Limit = 100
	}
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	a := &auditor{src: src, target: target, opts: o, ids: map[string][16]byte{}, parts: map[intake.TP]*part{}}
	report := &Report{Pipeline: target.Pipeline, Group: target.Group, DeadLetterTopic: target.DeadLetterTopic, Settled: true, Findings: []Finding{}}
	if err := a.opts.check(); err != nil {
		return nil, err
	}
	if err := a.open(ctx); err != nil {
		return nil, fmt.Errorf("audit %s: %w", target.Pipeline, err)
	}
	letters := newLetters(target.Pipeline, a.find)
	for _, step := range []func(context.Context) error{
		a.readRows,
		func(ctx context.Context) error { return a.readLetters(ctx, letters) },
		a.readRecords,
	} {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("audit %s: %w", target.Pipeline, err)
		}
	}
	for _, tp := range broker.Sorted(a.parts) {
		report.add(a.parts[tp], o.Limit)
	}
	report.Messages, report.Unreadable = letters.messages, letters.unreadable
	report.Proven = !report.Total.broken() && (o.AllowPending || report.Total.Pending == 0)
	report.Seconds = o.Now().Sub(began).Seconds()
	return report, nil
}

// open reads how far the group has come before it reads how long the logs are.
func (a *auditor) open(ctx context.Context) error {
	found, err := a.src.EventsAdmin.Topics(ctx, a.target.Topics...)
	if err != nil {
		return err
	}
	for _, topic := range a.target.Topics {
		if _, there := found[topic]; !there {
			return fmt.Errorf("topic %s does not exist", topic)
		}
		a.ids[topic] = found[topic].ID
	}
	if err := a.opts.checkPartitions(found); err != nil {
		return err
	}
	checkpoints, err := a.checkpoints(ctx)
	if err != nil {
		return err
	}
	committed, err := a.src.EventsAdmin.Committed(ctx, a.target.Group)
	if err != nil {
		return err
	}
	logs, err := a.src.EventsAdmin.Logs(ctx, a.target.Topics...)
	if err != nil {
		return err
	}
	readable, err := a.src.EventsAdmin.Readable(ctx, logs, a.target.Topics...)
	if err != nil {
		return err
	}
	for tp, log := range logs {
		if len(a.opts.Partitions) > 0 && !slices.Contains(a.opts.Partitions, tp.Partition) {
			continue
		}
		p := &part{topic: tp.Topic, topicID: a.ids[tp.Topic], partition: tp.Partition, log: log, readable: readable[tp]}
		p.checkpoint, p.committed = pointer(checkpoints, tp), pointer(committed, tp)
		p.book = a.bookOf(p)
		a.parts[tp] = p
	}
	if err := a.opts.checkGroup(a.target.Group, a.parts); err != nil {
		return err
	}
	return a.opts.checkRange(a.parts)
}

func pointer(of map[intake.TP]int64, tp intake.TP) *int64 {
	if v, ok := of[tp]; ok {
		return &v
	}
	return nil
}

func (a *auditor) checkpoints(ctx context.Context) (map[intake.TP]int64, error) {
	stored, err := a.src.Database.Checkpoints(ctx, a.target.Group)
	if err != nil {
		return nil, err
	}
	next := map[intake.TP]int64{}
	for _, c := range stored {
		if c.Found && a.ids[c.Topic] == c.TopicID {
			next[intake.TP{Topic: c.Topic, Partition: c.Partition}] = c.Next
		}
	}
	return next, nil
}

// bookOf opens a partition's book. What counts as processed is the further of checkpoint and commit: records that an
// outside reset of the offsets went past will never be processed, and are missing rather than pending.
func (a *auditor) bookOf(p *part) *book {
	from, until, frontier := p.log.Start, p.readable.End, int64(0)
	if a.opts.From != nil {
		from = *a.opts.From
	}
	if a.opts.To != nil {
		until = min(until, *a.opts.To)
	}
	for _, next := range []*int64{p.checkpoint, p.committed} {
		if next != nil {
			frontier = max(frontier, *next)
		}
	}
	b := newBook(from, until, p.log.Start, frontier)
	b.deep = a.opts.Deep
	return b
}

func (a *auditor) find(topic string, partition int32) (*book, [16]byte) {
	if p := a.parts[intake.TP{Topic: topic, Partition: partition}]; p != nil {
		return p.book, p.topicID
	}
	return nil, [16]byte{}
}

// often is how many steps lie between two words of progress.
const often = 1000

// readRows enters every row's origin.
func (a *auditor) readRows(ctx context.Context) error {
	total, done := int64(0), int64(0)
	ranges := map[string][]pg.Range{}
	for tp, p := range a.parts {
		total += p.book.until - p.book.from
		ranges[tp.Topic] = append(ranges[tp.Topic], pg.Range{Partition: tp.Partition, From: p.book.from, Until: p.book.until})
	}
	for topic, of := range ranges {
		err := a.src.Database.Origins(ctx, a.ids[topic], of, func(partition int32, offset int64) error {
			if done++; done%often == 0 {
				a.opts.Progress("rows", done, total)
			}
			if p := a.parts[intake.TP{Topic: topic, Partition: partition}]; p != nil {
				p.book.row(offset)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readLetters enters every message that lies on the dead-letter topic now.
func (a *auditor) readLetters(ctx context.Context, l *letters) error {
	if a.target.DeadLetterTopic == "" {
		return nil
	}
	logs, err := a.src.LettersAdmin.Logs(ctx, a.target.DeadLetterTopic)
	if err != nil {
		return fmt.Errorf("dead letters: %w", err)
	}
	if logs, err = a.src.LettersAdmin.Readable(ctx, logs, a.target.DeadLetterTopic); err != nil {
		return fmt.Errorf("dead letters: %w", err)
	}
	total := int64(0)
	for _, log := range logs {
		total += log.End - log.Start
	}
	err = broker.Read(ctx, a.src.Letters, nil, logs, func(r event.Record) error {
		l.take(&r)
		if l.messages%often == 0 {
			a.opts.Progress("dead letters", l.messages, total)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("dead letters: %w", err)
	}
	l.finish()
	return nil
}
