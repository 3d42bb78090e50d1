package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"appliance/internal/broker"
	"appliance/internal/deadletter"
)

// replayReport is what a replay would do, or did.
type replayReport struct {
	DryRun    bool               `json:"dryRun"`
	Topic     string             `json:"topic"` // of the dead letters
	Scanned   int                `json:"scanned"`
	Truncated bool               `json:"truncated"`
	TimedOut  bool               `json:"timedOut"`
	Newest    bool               `json:"newest"`
	Planned   []plannedReplay    `json:"planned"` // in the order of publication
	Skipped   []deadletter.Skip  `json:"skipped"`
	Missing   []string           `json:"missing,omitempty"`
	Published []broker.Published `json:"published"`
	StoppedAt string             `json:"stoppedAt,omitempty"` // the ref of the first that was not acknowledged
	Problem   string             `json:"problem,omitempty"`
}

type plannedReplay struct {
	Ref       string `json:"ref"`
	Attempt   int    `json:"attempt"` // that the record will carry
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Bytes     int    `json:"bytes"` // of its value
}

func newDLQReplayCmd(e *environment) *cobra.Command {
	var f requestFlags
	var dryRun bool
	cmd := &cobra.Command{
		Use: "replay [DIR]", Short: "Put dead letters back where they came from",
		Long: "Publishes the records of dead letters onto their topic again: key, value and headers byte for byte, and two headers\n" +
			"that count the replays and name the letter. Without --dry-run=false it only says what it would do.\n\n" +
			"--limit N takes the newest N; --refs takes exactly those, all or none. Published is the oldest first, one at a time,\n" +
			"each acknowledged; it stops at the first that is not. Doing it again is safe: a ledger takes an event once.\n\n" +
			"A letter is skipped where it cannot be read (undecodable), claims a topic that no pipeline here consumes\n" +
			"(foreign-topic), or has been replayed max_attempts times (budget-exhausted).\n\n" +
			"Exit codes: 1 stopped half-way; 2 refused, nothing was published; 3 the broker doesn't answer.",
		Example: "  appliance dlq replay --limit 50 --reason unconvertible\n" +
			"  appliance dlq replay --refs events.cloudevents.v1/3/9912 --dry-run=false",
		Args: optionalDirectory,
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, err := loadLetterTopic(e, first(args), f.letters)
			if err != nil {
				return err
			}
			if !dryRun && !topic.Replay.Enabled {
				return refused(errors.New("replays are switched off (REPLAY_ENABLED, or enabled of the replay block); a dry run is not"))
			}
			request, err := f.request(cmd, topic)
			if err != nil {
				return refused(err)
			}
			report, failed := replay(cmd.Context(), topic, request, dryRun)
			if report == nil {
				return failed
			}
			if f.asJSON {
				err = printJSON(e.stdout, report)
			} else {
				err = printReplay(e.stdout, report)
			}
			return errors.Join(failed, err)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.refs, "refs", "", "exactly these, topic/partition/offset with commas between them")
	cmd.Flags().BoolVar(&dryRun, "dry-run", true, "only say what would be done")
	return cmd
}

// replay reads, plans, and publishes unless it is a dry run: both are the same but for the last step. The report is nil
// where nothing could be read.
func replay(ctx context.Context, topic letterTopic, q deadletter.Request, dryRun bool) (*replayReport, error) {
	page, err := readPage(ctx, topic, q)
	if err != nil {
		return nil, err
	}
	intent := deadletter.Plan(page.Entries, deadletter.Bounds{Topics: topic.Owned, MaxAttempts: topic.Replay.MaxAttempts})
	report := newReplayReport(topic.Topic, page, intent, dryRun)
	if err := deadletter.Refusal(q, page, intent); err != nil {
		report.Problem = err.Error()
		if !errors.Is(err, deadletter.ErrIncomplete) {
			err = unreachable(err)
			if dryRun {
				err = nil // it says so, and publishes nothing anyway
			}
			return report, err
		}
		return report, refused(err)
	}
	if dryRun || len(intent.Publish) == 0 {
		return report, nil
	}
	return report, report.publish(ctx, topic, intent)
}

func newReplayReport(topic string, p deadletter.Page, intent deadletter.Intent, dryRun bool) *replayReport {
	r := &replayReport{
		DryRun: dryRun, Topic: topic, Scanned: p.Scanned, Truncated: p.Truncated, TimedOut: p.TimedOut, Newest: p.Newest,
		Planned: make([]plannedReplay, len(intent.Publish)), Skipped: append([]deadletter.Skip{}, intent.Skipped...),
		Missing: p.Missing, Published: []broker.Published{},
	}
	for i, p := range intent.Publish {
		r.Planned[i] = plannedReplay{p.Ref, p.Attempt, p.Record.Topic, p.Record.Partition, len(p.Record.Value)}
	}
	return r
}

// publish carries the plan out, and notes how far it came.
func (r *replayReport) publish(ctx context.Context, topic letterTopic, intent deadletter.Intent) error {
	replayer, err := broker.NewReplayer(topic.Home)
	if err != nil {
		return refused(err)
	}
	defer replayer.Close()
	done, err := replayer.Publish(ctx, intent.Publish)
	r.Published = append(r.Published, done...)
	if stopped, ok := errors.AsType[*broker.StoppedError](err); ok {
		r.StoppedAt, r.Problem = stopped.Ref, stopped.Error()
	}
	return err
}

func printReplay(to io.Writer, r *replayReport) error {
	var lines []string
	if r.DryRun {
		for _, p := range r.Planned {
			lines = append(lines, fmt.Sprintf("would replay %s, attempt %d, %d bytes", p.Ref, p.Attempt, p.Bytes))
		}
	}
	for _, p := range r.Published {
		lines = append(lines, fmt.Sprintf("replayed %s, attempt %d, as %s", p.Ref, p.Attempt, deadletter.Ref(p.Topic, p.Partition, p.Offset)))
	}
	for _, s := range r.Skipped {
		lines = append(lines, fmt.Sprintf("skipped %s: %s: %s", s.Ref, s.Reason, s.Detail))
	}
	for _, ref := range r.Missing {
		lines = append(lines, "missing "+ref)
	}
	if r.DryRun {
		lines = append(lines, fmt.Sprintf("would replay %d, skip %d; nothing was published (--dry-run=false does it)", len(r.Planned), len(r.Skipped)))
	} else {
		lines = append(lines, fmt.Sprintf("replayed %d of %d, skipped %d", len(r.Published), len(r.Planned), len(r.Skipped)))
	}
	lines = append(lines, scannedWords(r.Topic, r.Scanned, r.Truncated, r.TimedOut, r.Newest)...)
	return printLines(to, lines)
}
