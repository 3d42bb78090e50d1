// Command write renders the scripts of a folder into another.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"appliance/internal/runbook"
)

func main() {
	if err := write(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // this is a main
	}
}

func write(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: write SCRIPTS PAGES")
	}
	found, err := filepath.Glob(filepath.Join(args[0], "*.txtar"))
	if err != nil {
		return err
	}
	scripts := map[string][]byte{}
	for _, file := range found {
		if scripts[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			return err
		}
	}
	pages, err := runbook.Files(scripts)
	if err != nil {
		return err
	}
	if err := forget(args[1], pages); err != nil {
		return err
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(args[1], name), []byte(text), 0o644); err != nil { //nolint:gosec // documentation is for everybody
			return err
		}
	}
	return nil
}

// forget removes the pages of scripts that are gone.
func forget(dir string, pages map[string]string) error {
	old, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return err
	}
	for _, file := range old {
		if _, kept := pages[filepath.Base(file)]; !kept {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	return nil
}
