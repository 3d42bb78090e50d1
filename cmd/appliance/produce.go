package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"appliance/internal/binding"
	"appliance/internal/broker"
	"appliance/internal/event"
	"appliance/internal/progress"
)

// maxLine bounds a line: more than any broker takes as one record, so that a file without line ends is refused and not
// read into memory.
const maxLine = 64 << 20

// produceOptions are the flags of produce.
type produceOptions struct {
	config, cluster, topic, mode string
	rate                         float64
	timeout                      time.Duration
	raw, keepGoing, asJSON       bool
}

// produced is what came of it.
type produced struct {
	Topic     string  `json:"topic"`
	Mode      string  `json:"mode"`
	Lines     int     `json:"lines"`    // read, without empty ones
	Produced  int     `json:"produced"` // acknowledged by all replicas
	Refused   int     `json:"refused"`  // lines that are no event
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"per_second"`
}

// newProduceCmd puts JSON lines onto a topic.
func newProduceCmd(e *environment) *cobra.Command {
	var o produceOptions
	cmd := &cobra.Command{
		Use: "produce FILE|-", Short: "Put JSON lines onto the topic of events",
		Long: "Reads one CloudEvent in JSON a line and produces it, acknowledged by all replicas. The key is the event's\n" +
			"partitionkey, else its source. Lines are checked as they are read: at the first that is no event it stops with\n" +
			"FILE:LINE and exit code 2, and says how many before it were produced. --keep-going leaves such lines out and\n" +
			"goes on; --raw sends every line as it is, checked or not, for a topic that shall see poison.\n\n" +
			"Where the broker stops answering it ends with exit code 3 once a line has waited for --timeout, and says how many\n" +
			"were confirmed. The others may be on the topic or not. To send the whole file again is safe: an event that comes\n" +
			"twice has the same identity, and a ledger takes it once.",
		Example: "  appliance generate -n 1000 | appliance produce -\n  appliance produce --mode binary --rate 200 events.jsonl",
		Args:    exactly(1, "FILE, or - for stdin"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return refused(err)
			}
			return o.run(cmd.Context(), e, args[0])
		},
	}
	configFlag(cmd, &o.config)
	flags := cmd.Flags()
	flags.StringVar(&o.topic, "topic", "", "the topic (default: the one that the ledger's pipeline reads)")
	flags.StringVar(&o.cluster, "cluster", "", "name of the kafka resource (default: that of the ledger's pipeline)")
	flags.StringVar(&o.mode, "mode", "structured", "structured: the value is the event; binary: headers are its attributes")
	flags.Float64Var(&o.rate, "rate", 0, "events a second (default: as fast as the broker takes them)")
	flags.DurationVar(&o.timeout, "timeout", broker.DeliveryTimeout, "how long an event may wait for its confirmation, at least 1s")
	flags.BoolVar(&o.keepGoing, "keep-going", false, "leave out lines that are no event, and go on")
	flags.BoolVar(&o.raw, "raw", false, "send every line as it is, also one that is no event")
	jsonFlag(cmd, &o.asJSON)
	return cmd
}

func (o *produceOptions) check() error {
	switch {
	case o.mode != "structured" && o.mode != "binary":
		return fmt.Errorf("--mode is structured or binary, not %q", o.mode)
	case o.raw && o.mode == "binary":
		return errors.New("--raw sends lines as they are, which has no binary mode")
	case o.rate < 0:
		return fmt.Errorf("--rate is a number of events a second, not %v", o.rate)
	case o.timeout < time.Second:
		return fmt.Errorf("--timeout is at least 1s, not %v", o.timeout)
	}
	return nil
}

func (o *produceOptions) run(ctx context.Context, e *environment, file string) error {
	in, total, err := openLines(e, file)
	if err != nil {
		return refused(err)
	}
	defer in.Close()
	s, err := loadServices(e, o.config)
	if err != nil {
		return err
	}
	cluster, err := o.target(s)
	if err != nil {
		return refused(err)
	}
	if err := topicThere(ctx, cluster, o.topic); err != nil {
		return err
	}
	producer, err := broker.NewProducer(cluster, o.timeout)
	if err != nil {
		return refused(err)
	}
	defer producer.Close()
	p := &producing{
		opts: o, name: file, out: e.stderr, now: e.now, producer: producer,
		bar:  progress.New(e.stderr, e.isTerminal, e.now, "produce", total),
		sent: produced{Topic: o.topic, Mode: o.mode},
	}
	err = p.all(ctx, in)
	return errors.Join(p.report(e.stdout), err)
}

// target fills in what was not said, and finds the cluster.
func (o *produceOptions) target(s *services) (broker.Cluster, error) {
	if o.topic == "" || o.cluster == "" {
		ledgers := s.ledgers("")
		if len(ledgers) == 0 {
			return broker.Cluster{}, errors.New("the configuration has no ledger's pipeline to take them from: give --topic and --cluster")
		}
		o.topic, o.cluster = cmp.Or(o.topic, ledgers[0].Topics[0]), cmp.Or(o.cluster, ledgers[0].Cluster)
	}
	return s.cluster(o.cluster)
}

// producing is one call of produce on its way.
type producing struct {
	opts     *produceOptions
	name     string // of the file, for people
	out      io.Writer
	now      func() time.Time
	producer *broker.Producer
	bar      *progress.Bar
	began    time.Time
	sent     produced
}

// all sends every line. What was queued before an error is still sent, so that the count is what it says.
func (p *producing) all(ctx context.Context, in io.Reader) error {
	p.began = p.now()
	defer p.bar.Done()
	failed := p.lines(ctx, in)
	acked, err := p.producer.Flush(ctx)
	p.sent.Produced = acked
	p.sent.Seconds = p.now().Sub(p.began).Seconds()
	if p.sent.Seconds > 0 {
		p.sent.PerSecond = float64(acked) / p.sent.Seconds
	}
	if err != nil {
		return errors.Join(p.unconfirmed(ctx, err), failed)
	}
	if failed == nil && p.sent.Refused > 0 {
		return refused(fmt.Errorf("%d of %d lines of %s are no event", p.sent.Refused, p.sent.Lines, p.name))
	}
	return failed
}

// unconfirmed says what is known of the lines before the first failure, and what isn't.
func (p *producing) unconfirmed(ctx context.Context, err error) error {
	rest := p.sent.Lines - p.sent.Refused - p.sent.Produced
	if !broker.Unknown(err) {
		return fmt.Errorf("after %d were confirmed: %w", p.sent.Produced, err)
	}
	err = fmt.Errorf("%d were confirmed, and whether the other %d that were read are on the topic is unknown; "+
		"to send all of them again is safe, since a ledger takes an event once: %w", p.sent.Produced, rest, err)
	if ctx.Err() != nil {
		return err // not the broker's doing
	}
	return unreachable(err)
}

func (p *producing) lines(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	lines.Split(wholeLines)
	for number := 1; lines.Scan(); number++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := p.wait(ctx); err != nil {
			return err
		}
		p.sent.Lines++
		p.bar.Set(int64(p.sent.Lines))
		if err := p.line(ctx, bytes.Clone(lines.Bytes())); err != nil {
			if !notAnEvent(err) {
				return nil // of a line before this one, and the flush says it too
			}
			at := fmt.Errorf("%s:%d: %w", p.name, number, err)
			p.sent.Refused++
			if !p.opts.keepGoing {
				return refused(at)
			}
			fmt.Fprintln(p.out, at)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read %s: %w", p.name, err)
	}
	return nil
}

// notAnEvent tells a line at fault from a broker that refused.
func notAnEvent(err error) bool {
	_, fault := errors.AsType[*event.Fault](err)
	return fault || errors.Is(err, binding.ErrBinary)
}

func (p *producing) line(ctx context.Context, line []byte) error {
	bind := binding.Structured
	if p.opts.mode == "binary" {
		bind = binding.Binary
	}
	r, err := bind(line)
	if err != nil && p.opts.raw {
		r, err = event.Record{Value: line, Headers: []event.Header{{Key: "content-type", Value: []byte(binding.ContentType)}}}, nil
	}
	if err != nil {
		return err
	}
	r.Topic = p.opts.topic
	return p.producer.Produce(ctx, r)
}

// wait keeps to the rate: the nth event leaves n / rate seconds after the first.
func (p *producing) wait(ctx context.Context) error {
	if p.opts.rate <= 0 {
		return ctx.Err()
	}
	due := p.began.Add(time.Duration(float64(p.sent.Lines) / p.opts.rate * float64(time.Second)))
	timer := time.NewTimer(due.Sub(p.now()))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (p *producing) report(to io.Writer) error {
	if p.opts.asJSON {
		return printJSON(to, p.sent)
	}
	_, err := fmt.Fprintf(to, "produced %d events onto %s in %.1f s (%.0f/s)\n", p.sent.Produced, p.sent.Topic, p.sent.Seconds, p.sent.PerSecond)
	return err
}

// wholeLines splits at \n alone: a carriage return belongs to the line.
func wholeLines(data []byte, atEnd bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEnd && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// openLines opens the file, or stdin for -, and counts its lines where progress will be drawn.
func openLines(e *environment, file string) (io.ReadCloser, int64, error) {
	if file == "-" {
		return io.NopCloser(e.stdin), 0, nil
	}
	in, err := os.Open(file)
	if err != nil {
		return nil, 0, err
	}
	info, err := in.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a directory", file)
	}
	var total int64
	if err == nil && e.isTerminal && info.Mode().IsRegular() {
		if total, err = countLines(in); err == nil {
			_, err = in.Seek(0, io.SeekStart)
		}
	}
	if err != nil {
		in.Close()
		return nil, 0, err
	}
	return in, total, nil
}

func countLines(in io.Reader) (int64, error) {
	buf, lines := make([]byte, 256<<10), int64(0)
	for {
		n, err := in.Read(buf)
		lines += int64(bytes.Count(buf[:n], []byte{'\n'}))
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return 0, err
		}
	}
}
