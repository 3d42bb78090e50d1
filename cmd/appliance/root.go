package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

const about = `appliance moves CloudEvents through Kafka into databases. Pipelines are HCL files.

One promise: an offset moves only when its record is durable, as a row or as a dead letter.

Exit codes: 0 ok, 1 failure, 2 refused or invalid, 3 a service that is needed doesn't answer.`

// newRootCmd puts the verbs together. Errors are returned, never printed by cobra: main prints each once.
func newRootCmd(e *environment) *cobra.Command {
	root := &cobra.Command{
		Use: "appliance", Short: "Event pipelines from HTTP through Kafka into databases", Long: about,
		SilenceErrors: true, SilenceUsage: true, SuggestionsMinimumDistance: 2,
		Args: func(cmd *cobra.Command, args []string) error { return unknownVerb(cmd, args) },
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(e.stdin)
	root.SetOut(e.stdout)
	root.SetErr(e.stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return refused(fmt.Errorf("%w\nSee: %s --help", err, cmd.CommandPath()))
	})
	root.AddCommand(
		newRunCmd(e), newLintCmd(e), newExplainCmd(e), newMigrateCmd(e), newTopicsCmd(e), newGenerateCmd(e),
		newProduceCmd(e), newAuditCmd(e), newDLQCmd(e), newBenchCmd(e), newTokenCmd(e), newVersionCmd(e),
	)
	strict(root)
	return root
}

// strict makes wrong words on the command line a refusal, exit code 2, at every depth: cobra's own would be a failure, and
// a word that a group of verbs doesn't know would print its help and succeed.
func strict(cmd *cobra.Command) {
	check := cmd.Args
	if cmd.HasSubCommands() {
		check, cmd.RunE = unknownVerb, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	if check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if _, known := errors.AsType[*exitError](err); err == nil || known {
				return err
			}
			return refused(fmt.Errorf("%w\nSee: %s --help", err, cmd.CommandPath()))
		}
	}
	for _, child := range cmd.Commands() {
		child.SuggestionsMinimumDistance = cmd.SuggestionsMinimumDistance
		strict(child)
	}
}

func unknownVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("there is no verb %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += fmt.Sprintf("; did you mean %q?", near[0])
	}
	return refused(fmt.Errorf("%s\nSee: %s --help", text, cmd.CommandPath()))
}
