package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"appliance/internal/fault"
	"appliance/internal/pipeline"
)

// explanation is what explain says of one code, whatever kind of code it is.
type explanation struct {
	Code    string `json:"code"`
	Kind    string `json:"kind"` // "sqlstate", "dead-letter reason" or "lint code"
	Title   string `json:"title"`
	Verdict string `json:"verdict,omitempty"` // of a SQLSTATE: whose fault it is
	Meaning string `json:"meaning"`
	Action  string `json:"action"`
}

func newExplainCmd(*environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "explain [CODE]", Short: "Say what a SQLSTATE, a dead letter's reason or a lint code means, and what to do",
		Long: "CODE is a SQLSTATE or its class (23514, 23), a reason of a dead letter (no-time), or the code in brackets of a\n" +
			"lint finding (shared-group). Without CODE it lists what it knows.",
		Example: "  appliance explain 23514\n  appliance explain no-time --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listCodes(cmd.OutOrStdout(), asJSON)
			}
			found, ok := explain(args[0])
			if !ok {
				return refused(fmt.Errorf("there is no code %q%s\nSee: appliance explain", args[0], nearestCode(args[0])))
			}
			if asJSON {
				return writeIndented(cmd.OutOrStdout(), found)
			}
			return found.print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// explain looks a code up, as it is written; a SQLSTATE also in lower case.
func explain(code string) (explanation, bool) {
	for _, x := range lintCodes() {
		if x.Code == code {
			return x, true
		}
	}
	if strings.ContainsAny(code, "0123456789") {
		code = strings.ToUpper(code)
	}
	entry, ok := fault.Explain(code)
	if !ok {
		return explanation{}, false
	}
	return fromFault(entry), true
}

func fromFault(entry fault.Entry) explanation {
	x := explanation{Code: entry.Code, Kind: "sqlstate", Title: entry.Title, Verdict: entry.Verdict.String(), Meaning: entry.Why, Action: entry.Do}
	for _, r := range fault.Reasons() {
		if r.Name == entry.Code {
			x.Kind, x.Verdict = "dead-letter reason", ""
		}
	}
	return x
}

func lintCodes() []explanation {
	var out []explanation
	for _, x := range pipeline.Explanations() {
		out = append(out, explanation{Code: string(x.Code), Kind: "lint code", Title: x.Title, Meaning: x.Meaning, Action: x.Action})
	}
	return out
}

// codes returns everything that has a line of its own: reasons, SQLSTATEs and classes, lint codes.
func codes() []explanation {
	var out []explanation
	for _, r := range fault.Reasons() {
		if entry, ok := fault.Explain(r.Name); ok {
			out = append(out, fromFault(entry))
		}
	}
	for _, row := range fault.Default().Rows {
		if entry, ok := fault.Explain(row.Code); ok {
			out = append(out, fromFault(entry))
		}
	}
	return append(out, lintCodes()...)
}

func nearestCode(given string) string {
	var names []string
	for _, x := range codes() {
		names = append(names, x.Code)
	}
	if best := pipeline.Nearest(given, names); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return ""
}

func (x explanation) print(w io.Writer) error {
	verdict := ""
	if x.Verdict != "" {
		verdict = "\nVerdict: " + x.Verdict
	}
	_, err := fmt.Fprintf(w, "%s (%s): %s%s\n\n%s\n\nWhat to do: %s\n", x.Code, x.Kind, x.Title, verdict, x.Meaning, x.Action)
	return err
}

func listCodes(w io.Writer, asJSON bool) error {
	if asJSON {
		return writeIndented(w, codes())
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, x := range codes() {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", x.Code, x.Kind, x.Verdict, x.Title)
	}
	return table.Flush()
}

func writeIndented(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
