package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"appliance/internal/generate"
)

// newGenerateCmd writes realistic events to stdout, for `produce -` or a POST.
func newGenerateCmd(e *environment) *cobra.Command {
	var o generate.Options
	cmd := &cobra.Command{
		Use: "generate", Short: "Write realistic events as JSON lines",
		Long: "Writes CloudEvents 1.0 in the JSON format to stdout, one a line, about 490 bytes each: device readings, alarms,\n" +
			"orders, payments and page views of the last hours. The same --seed gives the same events at other times; without\n" +
			"it every call gives others. --poison makes a share of the lines what no ledger can store, in five ways by turns:\n" +
			"no time, no type, a U+0000 in the data, a time of 40 years ago, and a line that is no JSON.",
		Example: "  appliance generate -n 1000 | appliance produce -\n" +
			"  appliance generate -n 500000 --poison 0.005 --seed 7 > events.jsonl",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Now = e.now()
			if !cmd.Flags().Changed("seed") {
				o.Seed = uint64(o.Now.UnixNano())
			}
			g, err := generate.New(o)
			if err != nil {
				return refused(err)
			}
			return writeLines(cmd.Context(), e.stdout, g, o.Total)
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&o.Total, "count", "n", 10, "how many events")
	flags.Uint64Var(&o.Seed, "seed", 0, "number that the events are derived from (default: the clock)")
	flags.StringSliceVar(&o.Types, "type", nil, "only these types: "+strings.Join(generate.Types(), ", "))
	flags.Float64Var(&o.Poison, "poison", 0, "share of lines that cannot be stored, 0 to 1")
	return cmd
}

func writeLines(ctx context.Context, to io.Writer, g *generate.Generator, count int) error {
	out := bufio.NewWriterSize(to, 64<<10)
	for n := range count {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("write events: stopped after %d: %w", n, err)
		}
		out.Write(g.Line(n).Raw) //nolint:errcheck // the writer keeps its first error for Flush
		if err := out.WriteByte('\n'); err != nil {
			return fmt.Errorf("write events: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}
