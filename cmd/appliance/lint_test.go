package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"appliance/internal/fault"
)

// invoke runs a verb with an environment of its own, and returns what the process would leave behind.
func invoke(env map[string]string, args ...string) (code int, stdout, stderr string) {
	var out, words bytes.Buffer
	e := &environment{
		stdin: strings.NewReader(""), stdout: &out, stderr: &words, now: time.Now,
		getenv: func(name string) (string, bool) { value, ok := env[name]; return value, ok },
	}
	root := newRootCmd(e)
	root.SetArgs(args)
	err := root.Execute()
	return exitCode(err), out.String(), words.String() + errorText(err)
}

func configuration(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.hcl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestLintSaysWhereAndExitsWithTwo(t *testing.T) {
	dir := configuration(t, "pipline \"x\" {}\n")
	code, stdout, stderr := invoke(nil, "lint", dir)
	if code != 2 || stdout != "" || !strings.Contains(stderr, filepath.Join(dir, "main.hcl")+":1:1: error:") || !strings.Contains(stderr, `Did you mean "pipeline"?`) {
		t.Errorf("%d\n%s\n%s", code, stdout, stderr)
	}
	code, stdout, stderr = invoke(nil, "lint", dir, "--json")
	var report struct {
		Valid       bool
		Diagnostics []struct{ Code string }
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 2 || report.Valid || report.Diagnostics[0].Code != "unknown-block" || stderr != "" {
		t.Errorf("%d %v\n%s\n%s", code, err, stdout, stderr)
	}
}

func TestLintPassesWithWarnings(t *testing.T) {
	dir := configuration(t, "variable \"spare\" {\n  default = 1\n}\npipeline \"a\" {\n  input \"stdin\" {}\n  output \"drop\" {}\n}\n")
	code, stdout, stderr := invoke(nil, "lint", dir)
	if code != 0 || stdout != "" || !strings.Contains(stderr, "warning: Unused") || !strings.Contains(stderr, "1 pipeline, 1 warning") {
		t.Errorf("%d\n%s\n%s", code, stdout, stderr)
	}
	if code, stdout, _ = invoke(nil, "lint", "--json", dir); code != 0 || !strings.Contains(stdout, `"valid": true`) {
		t.Errorf("%d\n%s", code, stdout)
	}
}

// The shipped configuration needs one variable, and says which.
func TestLintTakesTheShippedConfiguration(t *testing.T) {
	if code, _, stderr := invoke(nil, "lint"); code != 2 || !strings.Contains(stderr, "ADMIN_AUTH_SECRET") {
		t.Errorf("%d\n%s", code, stderr)
	}
	key := strings.Repeat("k", 32)
	if code, _, stderr := invoke(map[string]string{"ADMIN_AUTH_SECRET": key}, "lint"); code != 0 || strings.Contains(stderr, key) {
		t.Errorf("%d\n%s", code, stderr)
	}
}

func TestExplainKnowsEveryCode(t *testing.T) {
	for _, x := range codes() {
		if code, stdout, stderr := invoke(nil, "explain", x.Code); code != 0 || !strings.Contains(stdout, x.Meaning) || !strings.Contains(stdout, "What to do: ") {
			t.Errorf("%s: %d\n%s\n%s", x.Code, code, stdout, stderr)
		}
	}
	if len(codes()) < len(fault.Reasons())+30 {
		t.Errorf("only %d codes", len(codes()))
	}
	for given, want := range map[string]string{"no-tme": `did you mean "no-time"?`, "shared-groop": `did you mean "shared-group"?`, "xyzzy-plugh": `no code "xyzzy-plugh"`} {
		if code, stdout, stderr := invoke(nil, "explain", given); code != 2 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: %d\n%s\n%s", given, code, stdout, stderr)
		}
	}
	var one explanation
	code, stdout, _ := invoke(nil, "explain", "23514", "--json")
	if err := json.Unmarshal([]byte(stdout), &one); err != nil || code != 0 || one.Code != "23514" || one.Kind != "sqlstate" || one.Verdict == "" {
		t.Errorf("%d %v %s", code, err, stdout)
	}
}
