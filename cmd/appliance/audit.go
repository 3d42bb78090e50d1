package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"appliance/internal/audit"
	"appliance/internal/broker"
	"appliance/internal/progress"
)

// auditFlags are the flags of audit.
type auditFlags struct {
	pipeline, topic, group string
	partitions             []int32
	from, to               int64
	limit                  int
	allowPending, deep     bool
	asJSON                 bool
}

func newAuditCmd(e *environment) *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use: "audit [DIR]", Short: "Prove that every record is a row or a dead letter",
		Long: "Proves for a range of offsets that every record is a row, a duplicate of a row (the same event under other\n" +
			"coordinates) or a dead letter that holds its key, value and headers byte for byte, and lists those that are none.\n" +
			"The range is by default each partition's log, from its start to its end when the audit begins. It reads the\n" +
			"table of events once, the dead-letter topic once, and those records that neither accounts for; it joins no\n" +
			"group and changes nothing.\n\n" +
			"What is compared: a row with a record by topic, partition and offset; a duplicate with the row of its event by\n" +
			"source, id and time, and by the SHA-256 of the record's value; a dead letter with its record byte for byte. A\n" +
			"duplicate of other bytes than the row (other-bytes) may be another event under the same identity, and is listed\n" +
			"and no failure: one event in structured and in binary mode has different bytes too.\n" +
			"What a row holds is not compared with the record it came from, unless --deep is given: it reads every record of\n" +
			"the range, and a row is unequal that is of another event or whose payload_sha256 is not that of the record's\n" +
			"value. The other columns are not compared in any case, nor is what retention took. Where a processor changes an\n" +
			"event's id, source or time, --deep calls its row unequal.\n\n" +
			"Exit codes: 0 proven; 1 a record is missing, a row or dead letter is unequal, or records are not processed yet; 2 the\n" +
			"flags name nothing that could be audited, such as a range beyond every log; 3 a service doesn't answer.",
		Example: "  appliance audit\n  appliance audit --partition 3 --from 120000 --to 130000 --json",
		Args:    optionalDirectory,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := loadServices(e, first(args))
			if err != nil {
				return err
			}
			return f.run(cmd, e, s)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.pipeline, "pipeline", "", "the pipeline, where several write into a ledger")
	flags.StringVar(&f.topic, "topic", "", "only this topic of the pipeline")
	flags.StringVar(&f.group, "group", "", "the consumer group (default: the pipeline's)")
	flags.Int32SliceVar(&f.partitions, "partition", nil, "only these partitions")
	flags.Int64Var(&f.from, "from", 0, "first offset, in every partition (default: the start of the log)")
	flags.Int64Var(&f.to, "to", 0, "offset behind the last one; beyond the end it is the end (default: the end of the log)")
	flags.IntVar(&f.limit, "list", 100, "how many findings are listed at most")
	flags.BoolVar(&f.deep, "deep", false, "read every record, and compare it with its row: identity, and SHA-256 of the value")
	flags.BoolVar(&f.allowPending, "allow-pending", false, "records that are not processed yet are no failure; the verdict is then of the others alone")
	jsonFlag(cmd, &f.asJSON)
	return cmd
}

func (f *auditFlags) run(cmd *cobra.Command, e *environment, s *services) error {
	if f.limit < 1 {
		return refused(fmt.Errorf("--list %d: it lists at least 1", f.limit))
	}
	target, err := f.target(s)
	if err != nil {
		return refused(err)
	}
	src, letterTopic, closeAll, err := openSources(cmd.Context(), s, target)
	if err != nil {
		return err
	}
	defer closeAll()
	bars := &stages{e: e}
	o := audit.Options{
		Partitions: f.partitions, GroupMustExist: f.group != "", AllowPending: f.allowPending, Deep: f.deep,
		Limit: f.limit, Now: e.now, Progress: bars.set,
	}
	if cmd.Flags().Changed("from") {
		o.From = &f.from
	}
	if cmd.Flags().Changed("to") {
		o.To = &f.to
	}
	report, err := audit.Run(cmd.Context(), src, audit.Target{
		Pipeline: target.Name, Group: target.Group, Topics: target.Topics, DeadLetterTopic: letterTopic,
	}, o)
	bars.done()
	if _, named := errors.AsType[*audit.OptionError](err); named {
		return refused(err)
	}
	if err != nil {
		return err
	}
	if f.asJSON {
		err = printJSON(e.stdout, report)
	} else {
		err = printAudit(e.stdout, report)
	}
	if err == nil && !report.Proven {
		err = &exitError{code: exitFailure} // the report has said it
	}
	return err
}

// target chooses the pipeline, and applies the flags to it.
func (f *auditFlags) target(s *services) (ledgerPipeline, error) {
	found := s.ledgers(f.pipeline)
	switch {
	case len(found) == 0 && f.pipeline != "":
		return ledgerPipeline{}, fmt.Errorf("the configuration has no pipeline %q from Kafka into a ledger", f.pipeline)
	case len(found) == 0:
		return ledgerPipeline{}, errors.New("the configuration has no pipeline from Kafka into a ledger")
	case len(found) > 1:
		return ledgerPipeline{}, errors.New("several pipelines write into a ledger: choose one with --pipeline")
	}
	target := found[0]
	if f.topic != "" {
		if !slices.Contains(target.Topics, f.topic) {
			return ledgerPipeline{}, fmt.Errorf("--topic %s: pipeline %s reads %s", f.topic, target.Name, strings.Join(target.Topics, ", "))
		}
		target.Topics = []string{f.topic}
	}
	if f.group != "" {
		target.Group = f.group
	}
	return target, nil
}

// openSources connects to all that an audit reads.
func openSources(ctx context.Context, s *services, target ledgerPipeline) (audit.Sources, string, func(), error) {
	var src audit.Sources
	var topic string
	var closers []func()
	closeAll := func() {
		for _, c := range closers {
			c()
		}
	}
	fail := func(err error) (audit.Sources, string, func(), error) {
		closeAll()
		return src, "", nil, err
	}
	admin := func(name string) (broker.Cluster, *broker.Admin, error) {
		cluster, err := s.cluster(name)
		if err != nil {
			return cluster, nil, refused(err)
		}
		a, err := openAdmin(ctx, cluster)
		if err == nil {
			closers = append(closers, a.Close)
		}
		return cluster, a, err
	}
	var err error
	if src.Events, src.EventsAdmin, err = admin(target.Cluster); err != nil {
		return fail(err)
	}
	if letters, ok := s.cfg.DeadLetters[target.DeadLetters]; ok {
		topic = letters.Topic
		if src.Letters, src.LettersAdmin, err = admin(letters.Cluster); err != nil {
			return fail(err)
		}
	}
	conf, err := s.database(target.Database)
	if err != nil {
		return fail(refused(err))
	}
	if src.Database, err = openDatabase(ctx, target.Database, conf); err != nil {
		return fail(err)
	}
	closers = append(closers, src.Database.Close)
	return src, topic, closeAll, nil
}

// stages draws one bar a stage.
type stages struct {
	e     *environment
	stage string
	bar   *progress.Bar
}

func (s *stages) set(stage string, done, total int64) {
	if stage != s.stage {
		s.done()
		s.stage, s.bar = stage, progress.New(s.e.stderr, s.e.isTerminal, s.e.now, stage, total)
	}
	s.bar.Set(done)
}

func (s *stages) done() {
	if s.bar != nil {
		s.bar.Done()
	}
}

// printAudit prints a table of the partitions, then what was found, then the verdict.
func printAudit(to io.Writer, r *audit.Report) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "topic\tpartition\trange\tcheckpoint\tcommitted\tend\trows\tduplicates\tother bytes\tdead letters\tgaps\tpruned\tpending\tmissing or unequal\t")
	for _, p := range r.Partitions {
		fmt.Fprintf(w, "%s\t%d\t%d…%d\t%s\t%s\t%d\t%s\n", p.Topic, p.Partition, p.From, p.To, orDash(p.Checkpoint), orDash(p.Committed), p.LogEnd, cells(p.Counts))
	}
	fmt.Fprintf(w, "total\t\t\t\t\t\t%s\n", cells(r.Total))
	if err := w.Flush(); err != nil {
		return err
	}
	for _, f := range r.Findings {
		at := fmt.Sprintf("%s/%d/%d", f.Topic, f.Partition, f.First)
		if f.Last != f.First {
			at += "…" + strconv.FormatInt(f.Last, 10)
		}
		if _, err := fmt.Fprintf(to, "%s: %s%s\n", f.Kind, at, prefixed(": ", f.Detail)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(to, verdict(r))
	return err
}

func cells(c audit.Counts) string {
	return fmt.Sprintf("%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t", c.Rows, c.Duplicates, c.OtherBytes, c.DeadLetters, c.Gaps, c.Pruned, c.Pending, c.Missing+c.Unequal)
}

func orDash(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// behindTransactions counts the offsets that a transaction hides from the range.
func behindTransactions(r *audit.Report) int64 {
	hidden := int64(0)
	for _, p := range r.Partitions {
		hidden += p.LogEnd - p.StableEnd
	}
	return hidden
}

// verdict says in a few lines what the numbers mean.
func verdict(r *audit.Report) string {
	c := r.Total
	text := fmt.Sprintf("%d dead letters in %d copies", c.DeadLetters, c.LetterCopies)
	if r.Omitted > 0 {
		text = fmt.Sprintf("%d more findings are not listed (--list)\n", r.Omitted) + text
	}
	if c.Both > 0 {
		text += fmt.Sprintf("; %d records are a row and have a dead letter too", c.Both)
	}
	if c.OtherBytes > 0 {
		text += fmt.Sprintf("; %d duplicates have other bytes than the row of their identity, perhaps another event", c.OtherBytes)
	}
	if c.Unverified > 0 {
		text += fmt.Sprintf("; %d dead letters outlived their records and could not be compared", c.Unverified)
	}
	if hidden := behindTransactions(r); hidden > 0 {
		text += fmt.Sprintf("\n%d offsets lie behind the beginning of an open transaction and cannot be read yet: they are not in the range", hidden)
	}
	if r.Settled {
		text += "\ncheckpoint = committed = end in every partition"
	} else {
		text += "\ncheckpoint, committed and end differ"
	}
	switch {
	case c.Missing+c.Unequal > 0:
		return text + fmt.Sprintf("\nNOT PROVEN: %d records are missing, %d have a row or dead letters that are unequal", c.Missing, c.Unequal)
	case !r.Proven:
		return text + fmt.Sprintf("\nNOT YET PROVEN: %d records are not processed yet", c.Pending)
	case c.Pending > 0 && c.Pending == c.Offsets:
		return text + fmt.Sprintf("\nNOTHING IS PROVEN: 0 offsets are processed; %d pending", c.Pending)
	case c.Pending > 0:
		return text + fmt.Sprintf("\nPROVEN for the %d processed; %d pending", c.Offsets-c.Pending, c.Pending)
	default:
		return text + fmt.Sprintf("\nPROVEN: every one of %d offsets is accounted for", c.Offsets)
	}
}
