package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"appliance/internal/broker"
	"appliance/internal/deadletter"
	"appliance/internal/pipeline"
)

// letterTopic is a dead-letter topic and the topics that its letters may go back to.
type letterTopic struct {
	Topic   string
	Cluster broker.Cluster
	Owned   []string       // topics of the pipelines that use it, but not itself
	Home    broker.Cluster // where those are
	Replay  pipeline.Replay
}

func newDLQCmd(e *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "dlq", Short: "Look at dead letters, and put them back",
		Long: "Reads the dead-letter topic itself; it joins no group and moves nothing. Every read is bounded: of each partition\n" +
			"the newest records, at most as many as max_records of the replay block (REPLAY_MAX_RECORDS).",
		Args: func(cmd *cobra.Command, args []string) error { return unknownVerb(cmd, args) },
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newDLQDepthCmd(e), newDLQRecordsCmd(e), newDLQReplayCmd(e))
	return cmd
}

func newDLQDepthCmd(e *environment) *cobra.Command {
	var name string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "depth [DIR]", Short: "Say how much a dead-letter topic holds",
		Long: "Prints each partition's first and next offset, and their difference in all: an upper bound of the letters, since\n" +
			"a compacted topic holds fewer records than offsets. It tells nothing, a handful and a flood apart.",
		Args: optionalDirectory,
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, err := loadLetterTopic(e, first(args), name)
			if err != nil {
				return err
			}
			depth, err := depthOf(cmd.Context(), topic)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(e.stdout, depth)
			}
			return printDepth(e.stdout, depth)
		},
	}
	jsonFlag(cmd, &asJSON)
	lettersFlag(cmd, &name)
	return cmd
}

func newDLQRecordsCmd(e *environment) *cobra.Command {
	var f requestFlags
	cmd := &cobra.Command{
		Use: "records [DIR]", Short: "List the newest dead letters",
		Long: "Lists the newest dead letters of a topic, the newest first: why each was refused, where it came from, who its event\n" +
			"says it is as far as that can be read, how often it was replayed, and the first 512 bytes of its payload. Copies of\n" +
			"one letter are one entry. A record that is no dead letter is listed too, and says why it is none.\n\n" +
			"With --reason it reads as many records as one read may, and says how many it looked at.",
		Example: "  appliance dlq records --limit 20\n  appliance dlq records --limit 20 --reason unconvertible --json",
		Args:    optionalDirectory,
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, err := loadLetterTopic(e, first(args), f.letters)
			if err != nil {
				return err
			}
			request, err := f.request(cmd, topic)
			if err != nil {
				return refused(err)
			}
			page, err := readPage(cmd.Context(), topic, request)
			if err != nil {
				return err
			}
			answer := deadletter.NewAnswer(topic.Topic, page)
			if f.asJSON {
				return printJSON(e.stdout, answer)
			}
			return printAnswer(e.stdout, answer)
		},
	}
	f.add(cmd)
	return cmd
}

// requestFlags are the flags of a deadletter.Request. Numbers are texts here: cobra would take 0x10, +5 and 1_000.
type requestFlags struct {
	limit, refs, reason, letters string
	asJSON                       bool
}

func (f *requestFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.limit, "limit", "", "how many, from 1 to max_records of the replay block; more is refused")
	flags.StringVar(&f.reason, "reason", "", "only letters of this reason")
	lettersFlag(cmd, &f.letters)
	jsonFlag(cmd, &f.asJSON)
}

func lettersFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "dead-letters", "", "the dead_letters block, where the configuration has several")
}

func (f *requestFlags) request(cmd *cobra.Command, topic letterTopic) (deadletter.Request, error) {
	var limit, refs *string
	if cmd.Flags().Changed("limit") {
		limit = &f.limit
	}
	if cmd.Flags().Changed("refs") {
		refs = &f.refs
	}
	return deadletter.NewRequest(limit, refs, f.reason, topic.Replay.MaxRecords)
}

// loadLetterTopic compiles the configuration and finds the dead-letter topic in it.
func loadLetterTopic(e *environment, dir, name string) (letterTopic, error) {
	s, err := loadServices(e, dir)
	if err != nil {
		return letterTopic{}, err
	}
	topic, err := s.letterTopic(name)
	return topic, refused(err)
}

// letterTopic returns the dead_letters block of that name, or the only one.
func (s *services) letterTopic(name string) (letterTopic, error) {
	names := slices.Sorted(maps.Keys(s.cfg.DeadLetters))
	switch {
	case name == "" && len(names) == 1:
		name = names[0]
	case name == "" && len(names) == 0:
		return letterTopic{}, errors.New("the configuration has no dead_letters")
	case name == "":
		return letterTopic{}, fmt.Errorf("the configuration has several dead_letters: choose one of %s with --dead-letters", strings.Join(names, ", "))
	}
	block, ok := s.cfg.DeadLetters[name]
	if !ok {
		return letterTopic{}, fmt.Errorf("the configuration has no dead_letters %q", name)
	}
	out := letterTopic{Topic: block.Topic, Replay: s.cfg.Replay}
	home := block.Cluster
	for _, p := range s.cfg.Pipelines {
		if p.Kafka == nil || !slices.Contains(p.DeadLetters, name) {
			continue
		}
		if len(out.Owned) > 0 && p.Kafka.Cluster != home {
			return out, fmt.Errorf("dead_letters %q serves topics of the clusters %s and %s: a letter doesn't say which it came from", name, home, p.Kafka.Cluster)
		}
		home = p.Kafka.Cluster
		for _, t := range p.Kafka.Topics {
			if t != block.Topic && !slices.Contains(out.Owned, t) {
				out.Owned = append(out.Owned, t)
			}
		}
	}
	var err error
	if out.Cluster, err = s.cluster(block.Cluster); err != nil {
		return out, err
	}
	out.Home, err = s.cluster(home)
	return out, err
}

// openLetters connects to the topic's cluster and errs where the topic doesn't exist.
func openLetters(ctx context.Context, topic letterTopic) (*broker.Admin, error) {
	admin, err := openAdmin(ctx, topic.Cluster)
	if err != nil {
		return nil, err
	}
	missing, err := admin.Missing(ctx, topic.Topic)
	if err == nil && len(missing) == 0 {
		return admin, nil
	}
	admin.Close()
	if err != nil {
		return nil, unreachable(err)
	}
	return nil, fmt.Errorf("topic %s does not exist: create it, or let `appliance topics ensure` do it", topic.Topic)
}

func depthOf(ctx context.Context, topic letterTopic) (deadletter.Depth, error) {
	admin, err := openLetters(ctx, topic)
	if err != nil {
		return deadletter.Depth{}, err
	}
	defer admin.Close()
	logs, err := admin.Logs(ctx, topic.Topic)
	if err != nil {
		return deadletter.Depth{}, unreachable(err)
	}
	partitions := make([]deadletter.DepthOf, 0, len(logs))
	for _, tp := range broker.Sorted(logs) {
		partitions = append(partitions, deadletter.DepthOf{Partition: tp.Partition, Earliest: logs[tp].Start, Latest: logs[tp].End})
	}
	r := topic.Replay
	return deadletter.NewDepth(topic.Topic, partitions, deadletter.Limits{
		Enabled: r.Enabled, MaxRecords: r.MaxRecords, MaxAttempts: r.MaxAttempts, PollTimeout: r.PollTimeout.String(),
	}), nil
}

// readPage reads what answers a request.
func readPage(ctx context.Context, topic letterTopic, q deadletter.Request) (deadletter.Page, error) {
	admin, err := openLetters(ctx, topic)
	if err != nil {
		return deadletter.Page{}, err
	}
	defer admin.Close()
	page, err := broker.Page(ctx, admin, topic.Cluster, topic.Topic, q, topic.Replay.MaxRecords, topic.Replay.PollTimeout)
	if err != nil && ctx.Err() == nil {
		err = unreachable(err)
	}
	return page, err
}
