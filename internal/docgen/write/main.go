// Command write writes the generated pages under a docs folder.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"appliance/internal/docgen"
	"appliance/pipelines"
	"appliance/plugins"
)

func main() {
	if err := write(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: write DOCS")
	}
	files, err := docgen.Files(pipelines.FS, plugins.Descriptions())
	if err != nil {
		return err
	}
	for _, name := range docgen.Names(files) {
		path := filepath.Join(args[0], name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(files[name]), 0o644); err != nil { //nolint:gosec // documentation is for everybody
			return err
		}
	}
	return nil
}
