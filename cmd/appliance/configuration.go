package main

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/hashicorp/hcl/v2"

	"appliance/internal/pipeline"
	"appliance/pipelines"
	"appliance/plugins"
)

// directory is where a configuration comes from: the folder that was named, or the shipped one.
type directory struct {
	files fs.FS
	shown string // before file names in findings
}

// openDirectory takes a verb's optional argument [DIR].
func openDirectory(args []string) (directory, error) {
	if len(args) == 0 {
		return directory{files: pipelines.FS, shown: "(shipped)"}, nil
	}
	info, err := os.Stat(args[0])
	switch {
	case err != nil:
		return directory{}, refused(fmt.Errorf("open configuration: %w", err))
	case !info.IsDir():
		return directory{}, refused(fmt.Errorf("open configuration: %s is a file; a configuration is a directory of .hcl files", args[0]))
	}
	return directory{files: os.DirFS(args[0]), shown: args[0]}, nil
}

// configure loads and compiles, the one path of lint, run and every other verb.
func configure(d directory, lookup func(string) (string, bool)) (*pipeline.Source, *pipeline.Config, hcl.Diagnostics) {
	source, found := pipeline.Load(d.files, d.shown)
	if found.HasErrors() {
		return source, nil, found
	}
	cfg, more := source.Compile(pipeline.Inputs{Lookup: lookup, Plugins: plugins.Descriptions()})
	return source, cfg, append(found, more...)
}

// printFindings prints what was found, and returns a refusal when something of it is an error.
func printFindings(e *environment, source *pipeline.Source, found hcl.Diagnostics) error {
	if err := source.Print(e.stderr, found); err != nil {
		return err
	}
	if found.HasErrors() {
		return refused(fmt.Errorf("the configuration is refused: %s", tally(found)))
	}
	return nil
}
