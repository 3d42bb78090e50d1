package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"appliance/internal/deadletter"
)

func printLines(to io.Writer, lines []string) error {
	for _, line := range lines {
		if _, err := fmt.Fprintln(to, line); err != nil {
			return err
		}
	}
	return nil
}

func printDepth(to io.Writer, d deadletter.Depth) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "partition\tearliest\tlatest\t")
	for _, p := range d.Partitions {
		fmt.Fprintf(w, "%d\t%d\t%d\t\n", p.Partition, p.Earliest, p.Latest)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	off := ""
	if !d.Replay.Enabled {
		off = "; replays are switched off"
	}
	return printLines(to, []string{
		fmt.Sprintf("%s holds at most %d dead letters", d.Topic, d.Outstanding),
		fmt.Sprintf("one request takes at most %d records, one record at most %d replays, one read at most %s%s",
			d.Replay.MaxRecords, d.Replay.MaxAttempts, d.Replay.PollTimeout, off),
	})
}

// printAnswer prints a few lines for each letter. What comes from outside is quoted: a payload may hold a terminal's
// control characters.
func printAnswer(to io.Writer, a deadletter.Answer) error {
	for _, r := range a.Records {
		if err := printLines(to, listedWords(r)); err != nil {
			return err
		}
	}
	return printLines(to, append([]string{fmt.Sprintf("%d dead letters", a.Returned)},
		scannedWords(a.Topic, a.Scanned, a.Truncated, a.TimedOut, a.Newest)...))
}

func listedWords(r deadletter.Listed) []string {
	head := []string{r.Ref}
	if r.Reason != "" {
		head = append(head, fmt.Sprintf("%.64q", r.Reason))
	}
	if r.At != "" {
		head = append(head, r.At)
	}
	switch {
	case r.ReplayAttempts == deadletter.Exhausted:
		head = append(head, "replayed nobody knows how often")
	case r.ReplayAttempts > 0:
		head = append(head, fmt.Sprintf("replay %d of %s", r.ReplayAttempts, orUnknown(r.ReplayOf)))
	}
	if r.Copies > 1 {
		head = append(head, fmt.Sprintf("%d copies", r.Copies))
	}
	lines := []string{strings.Join(head, "  ")}
	if !r.Readable {
		lines = append(lines, fmt.Sprintf("  unreadable: %q", r.Problem))
	}
	if r.Detail != "" {
		lines = append(lines, fmt.Sprintf("  detail   %q", r.Detail))
	}
	if id := r.Event; id != nil {
		lines = append(lines, fmt.Sprintf("  event    id %q, type %q, source %q", id.ID, id.Type, id.Source))
	}
	if p := r.Payload; p != nil {
		lines = append(lines, fmt.Sprintf("  payload  %d bytes: %q", p.Bytes, p.Text))
	} else if r.Readable {
		lines = append(lines, "  payload  none")
	}
	return lines
}

func orUnknown(ref string) string {
	if ref == "" {
		return "an unknown letter"
	}
	return ref
}

// scannedWords says what an answer was computed from, and what it therefore doesn't say.
func scannedWords(topic string, scanned int, truncated, timedOut, newest bool) []string {
	lines := []string{fmt.Sprintf("%d records of %s were looked at", scanned, topic)}
	if truncated {
		lines = append(lines, "older ones were not: there may be more")
	}
	switch {
	case timedOut:
		lines = append(lines, "the read took longer than REPLAY_POLL_TIMEOUT and ended early: these are not the newest")
	case !newest && !truncated:
		lines = append(lines, "newer ones than the last of these may be among those that were not looked at")
	}
	return lines
}
