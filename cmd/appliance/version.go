package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"appliance/migrations"
)

// version is set by the linker, which can set nothing but a package variable: -X main.version=v1.2.3.
var version string

// buildVersion names this build: what the linker was given, else what the go command recorded, else "devel".
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// versions is what `version --json` prints.
type versions struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source, with a + where it was changed
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Schema   int64  `json:"schema"` // of PostgreSQL, as `migrate` makes it
}

func newVersionCmd(e *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Say which build this is",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := versions{Version: buildVersion(), Revision: revision(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
			var err error
			if v.Schema, err = latestSchema(); err != nil {
				return err
			}
			if asJSON {
				return printJSON(e.stdout, v)
			}
			_, err = fmt.Fprintf(e.stdout, "appliance %s (%s, %s, schema %d)\n", v.Version, v.Go, v.Platform, v.Schema)
			return err
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	rev, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			rev = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+"
		}
	}
	if rev == "" {
		return ""
	}
	return rev + changed
}

// latestSchema returns the number of the last migration in the binary.
func latestSchema() (int64, error) {
	files, err := fs.Glob(migrations.Postgres, "postgres/*.sql")
	if err != nil {
		return 0, fmt.Errorf("list migrations: %w", err)
	}
	latest := int64(0)
	for _, file := range files {
		number, _, _ := strings.Cut(path.Base(file), "_")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read number of migration %s: %w", file, err)
		}
		latest = max(latest, n)
	}
	return latest, nil
}

func jsonFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON instead of words")
}

// printJSON prints one value, indented: for programs, and readable.
func printJSON(to io.Writer, v any) error {
	enc := json.NewEncoder(to)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}
