package pipeline_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/hashicorp/hcl/v2"
	"golang.org/x/tools/txtar"

	"appliance/internal/pipeline"
)

// Each file of testdata/lint is a configuration and what is found in it. UPDATE_SCRIPTS=1 rewrites what is found.
func TestFindings(t *testing.T) {
	files, err := filepath.Glob("testdata/lint/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			source, cfg, found := compileArchive(t, archive)
			var got, asJSON bytes.Buffer
			if err := source.Print(&got, found); err != nil {
				t.Fatal(err)
			}
			if err := source.PrintJSON(&asJSON, found); err != nil {
				t.Fatal(err)
			}
			if (cfg == nil) != found.HasErrors() {
				t.Errorf("configuration is nil: %v, errors: %v", cfg == nil, found.HasErrors())
			}
			for _, out := range []string{got.String(), asJSON.String()} {
				if strings.Contains(out, "planted") || strings.Contains(out, "hunter2") {
					t.Errorf("a secret is shown:\n%s", out)
				}
			}
			checkJSON(t, asJSON.Bytes(), len(found))
			golden(t, name, archive, got.String())
		})
	}
}

func compileArchive(t *testing.T, archive *txtar.Archive) (*pipeline.Source, *pipeline.Config, hcl.Diagnostics) {
	t.Helper()
	dir, env := fstest.MapFS{}, map[string]string{}
	for _, f := range archive.Files {
		switch f.Name {
		case "want":
		case "env":
			for line := range strings.Lines(string(f.Data)) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
				env[name] = value
			}
		default:
			dir[f.Name] = &fstest.MapFile{Data: f.Data}
		}
	}
	source, found := pipeline.Load(dir, "")
	if found.HasErrors() {
		return source, nil, found
	}
	cfg, more := source.Compile(pipeline.Inputs{Plugins: plugins(), Lookup: from(env)})
	return source, cfg, append(found, more...)
}

func golden(t *testing.T, name string, archive *txtar.Archive, got string) {
	t.Helper()
	i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "want" })
	if os.Getenv("UPDATE_SCRIPTS") == "1" {
		if i >= 0 {
			archive.Files = slices.Delete(archive.Files, i, i+1)
		}
		archive.Files = append(archive.Files, txtar.File{Name: "want", Data: []byte(got)})
		if err := os.WriteFile(name, txtar.Format(archive), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if i < 0 || string(archive.Files[i].Data) != got {
		t.Errorf("found:\n%s\nUPDATE_SCRIPTS=1 rewrites the file, for review", got)
	}
}

// checkJSON reads the report as Terraform's consumers do.
func checkJSON(t *testing.T, raw []byte, findings int) {
	t.Helper()
	var report struct {
		FormatVersion string `json:"format_version"`
		Valid         *bool  `json:"valid"`
		ErrorCount    int    `json:"error_count"`
		WarningCount  int    `json:"warning_count"`
		Diagnostics   []struct {
			Severity, Summary, Detail, Code string
			Range                           *struct {
				Filename   string
				Start, End struct{ Line, Column, Byte int }
			}
			Snippet *struct {
				Code  string
				Start int `json:"highlight_start_offset"`
				End   int `json:"highlight_end_offset"`
			}
		}
	}
	if err := json.Unmarshal(raw, &report); err != nil {
		t.Fatalf("report is no JSON: %v\n%s", err, raw)
	}
	if report.FormatVersion != "1.0" || report.Valid == nil || *report.Valid != (report.ErrorCount == 0) ||
		len(report.Diagnostics) != findings || report.ErrorCount+report.WarningCount != findings {
		t.Errorf("report does not add up: %s", raw)
	}
	for _, d := range report.Diagnostics {
		if s := d.Snippet; s != nil && (s.Start < 0 || s.Start > len(s.Code) || s.End > len(s.Code)) {
			t.Errorf("highlight of %q is outside its line: %d to %d", s.Code, s.Start, s.End)
		}
		if d.Code == "" || d.Summary == "" || d.Detail == "" {
			t.Errorf("finding says too little: %+v", d)
		}
	}
}

// goldenCodes returns the codes in brackets of all golden files.
func goldenCodes(t *testing.T) (codes []pipeline.Code) {
	t.Helper()
	files, err := filepath.Glob("testdata/lint/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			for _, m := range regexp.MustCompile(`(?m)^\S+: (?:error|warning): .* \[([a-z-]+)\]$`).FindAllSubmatch(f.Data, -1) {
				codes = append(codes, pipeline.Code(m[1]))
			}
		}
	}
	if len(codes) < 50 {
		t.Errorf("only %d findings in all golden files", len(codes))
	}
	return codes
}
