package runbook

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	scripts = "../../testdata/script"
	pages   = "../../docs/runbooks"
)

func TestTheRunbooksAreCurrent(t *testing.T) {
	found, err := filepath.Glob(scripts + "/*.txtar")
	if err != nil || len(found) < 20 {
		t.Fatalf("%d scripts (%v)", len(found), err)
	}
	texts := map[string][]byte{}
	for _, file := range found {
		if texts[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	want, err := Files(texts)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(pages, name))
		if err != nil || string(got) != text {
			t.Errorf("docs/runbooks/%s is not current (%v): go generate ./internal/runbook", name, err)
		}
	}
	if there, err := filepath.Glob(pages + "/*.md"); err != nil || len(there) != len(want) {
		t.Errorf("docs/runbooks has %d pages, the scripts give %d (%v)", len(there), len(want), err)
	}
}

const script = `# A title
#
# Symptom: what
# is seen.
# Cause: why.
# What to do: this.
services

# first, this
appliance generate -n 3
stdin stdout
appliance produce -
stdout 'produced \d+'
! appliance audit
status 1
await rows 3
sql 'select ''a'''

-- f.json --
{}
`

func TestAScriptIsAPage(t *testing.T) {
	p, err := Read("topic_situation.txtar", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Render()
	if err != nil {
		t.Fatal(err)
	}
	want := `# A title

` + notice + `**Symptom.** what is seen.

**Cause.** why.

**What to do.** this.

First, this

` + "```sh" + `
appliance generate -n 3 | appliance produce -
# prints produced d+
appliance audit   # exit code 1
psql "$DATABASE_URL" -Atc 'select count(*) from events.cloud_event'   # until 3
psql "$DATABASE_URL" -Atc "select 'a'"
` + "```" + `

` + "`f.json`:" + `

` + "```json" + `
{}
` + "```\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWhatAPageCannotSayIsRefused(t *testing.T) {
	for name, change := range map[string][2]string{
		"no symptom":                   {"# Symptom: what\n# is seen.\n", ""},
		"no cause":                     {"# Cause: why.\n", ""},
		"nothing to do":                {"# What to do: this.\n", ""},
		"no title":                     {"# A title", "#"},
		"a word that nobody explained": {"status 1", "unquote f.json"},
		"an open quote":                {"'produced", "produced"},
	} {
		t.Run(name, func(t *testing.T) {
			broken := strings.Replace(script, change[0], change[1], 1)
			if broken == script {
				t.Fatal("nothing was changed")
			}
			if _, err := Files(map[string][]byte{"x.txtar": []byte(broken)}); err == nil {
				t.Error("it was rendered")
			}
		})
	}
}

func TestEveryWordAndUseIsExplained(t *testing.T) {
	for _, w := range Vocabulary() {
		if w.shell == nil || len(w.Uses) == 0 {
			t.Errorf("%s has no meaning", w.Name)
		}
		for _, u := range w.Uses {
			if !strings.HasPrefix(u.Usage, w.Name) || u.Does == "" || strings.Contains(u.Usage+u.Does, "|") {
				t.Errorf("%s: %q would not stand in a table", w.Name, u.Usage)
			}
		}
	}
}

func TestWordsAreSplitAsTestscriptDoes(t *testing.T) {
	for raw, want := range map[string][]string{
		"":                  nil,
		"a  b":              {"a", "b"},
		"'a b' c":           {"a b", "c"},
		"'it''s' ''":        {"it's", ""},
		"x'$'y":             {"x$y"},
		"{a=\"b\"} 'c\"d' ": {`{a="b"}`, `c"d`},
	} {
		if got, err := split(raw); err != nil || !slices.Equal(got, want) {
			t.Errorf("split(%q) = %q, %v, want %q", raw, got, err, want)
		}
	}
}

func TestQuotedTextIsOneWordOfAShell(t *testing.T) {
	for text, want := range map[string]string{
		"a b":     `'a b'`,
		"it's":    `"it's"`,
		"'$x'":    `''\''$x'\'''`,
		`"a"`:     `'"a"'`,
		"back\\'": `'back\'\'''`,
	} {
		if got := quote(text); got != want {
			t.Errorf("quote(%s) = %s, want %s", text, got, want)
		}
	}
}
