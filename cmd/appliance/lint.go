package main

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"
)

// newLintCmd checks a configuration as run would, and stops before anything is opened.
func newLintCmd(e *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "lint [DIR]", Short: "Check a configuration, as run would",
		Long: "Checks the .hcl files of a directory, or the shipped ones: syntax, names, types, references, the components' own\n" +
			"checks, mappings, and what the whole means. It reads the environment as run does, since env() decides too.\n\n" +
			"Exit codes: 0 nothing but warnings, 2 there are errors. `appliance explain CODE` says more about a finding.",
		Example: "  appliance lint ./pipelines\n  appliance lint --json | jq -r '.diagnostics[].code'",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := openDirectory(args)
			if err != nil {
				return err
			}
			source, cfg, found := configure(dir, e.getenv)
			if asJSON {
				if err := source.PrintJSON(cmd.OutOrStdout(), found); err != nil || cfg != nil {
					return err
				}
				return &exitError{code: exitRefused}
			}
			if err := source.Print(cmd.ErrOrStderr(), found); err != nil {
				return err
			}
			if cfg == nil {
				return refused(fmt.Errorf("%s is refused: %s", dir.shown, tally(found)))
			}
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), "%s is good: %s, %s\n", dir.shown, count(len(cfg.Pipelines), "pipeline"), tally(found))
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object in the shape of Terraform's validate -json")
	return cmd
}

// tally counts findings in words.
func tally(found hcl.Diagnostics) string {
	failed := len(found.Errs())
	warnings := 0
	for _, d := range found {
		if d.Severity == hcl.DiagWarning {
			warnings++
		}
	}
	if failed == 0 {
		return count(warnings, "warning")
	}
	return count(failed, "error") + ", " + count(warnings, "warning")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
