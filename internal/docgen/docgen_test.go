package docgen_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"appliance/internal/docgen"
	"appliance/internal/pipeline"
	"appliance/pipelines"
	"appliance/plugins"
)

const docs = "../../docs"

func TestGeneratedPagesAreCurrent(t *testing.T) {
	files, err := docgen.Files(pipelines.FS, plugins.Descriptions())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range docgen.Names(files) {
		got, err := os.ReadFile(filepath.Join(docs, name))
		if err != nil || string(got) != files[name] {
			t.Errorf("docs/%s is not current (%v): run go generate ./internal/docgen", name, err)
		}
	}
	pages, err := filepath.Glob(docs + "/components/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if _, ok := files["components/"+filepath.Base(page)]; !ok {
			t.Errorf("%s is of no component", page)
		}
	}
}

func TestEveryComponentPageHasTheFiveHeadings(t *testing.T) {
	pages, err := pipeline.Pages(plugins.Descriptions())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		text, at := docgen.Component(p), 0
		for _, heading := range []string{"Usage", "Arguments", "Refuses", "Metrics", "Examples"} {
			next := strings.Index(text[at:], "\n## "+heading+"\n")
			if next < 0 {
				t.Fatalf("page of %s has no %s in its place", p.Name, heading)
			}
			at += next
		}
	}
}

// Every fenced hcl block of the documentation lints, with the shipped resources around it as far as it declares none of
// the same name.
func TestFencedBlocksLint(t *testing.T) {
	fences := regexp.MustCompile("(?ms)^```hcl\n(.*?)^```$")
	checked := 0
	for _, page := range markdown(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range fences.FindAllSubmatchIndex(text, -1) {
			line := bytes.Count(text[:m[2]], []byte("\n")) + 1
			lintFence(t, page, line, string(text[m[2]:m[3]]))
			checked++
		}
	}
	if checked < 6 {
		t.Errorf("only %d blocks were found", checked)
	}
}

func markdown(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("../../*.md")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(docs, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "runbooks" {
			return fs.SkipDir // rendered from scripts that run their blocks, some of which have to be refused
		}
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

func lintFence(t *testing.T, page string, line int, text string) {
	t.Helper()
	around := shippedWithout(t, text)
	source, found := pipeline.Load(fstest.MapFS{"fence.hcl": {Data: []byte(text)}, "around.hcl": {Data: around}}, "")
	if !found.HasErrors() {
		_, more := source.Compile(pipeline.Inputs{Plugins: plugins.Descriptions(), Lookup: func(name string) (string, bool) {
			value, ok := map[string]string{
				"ADMIN_AUTH_SECRET": strings.Repeat("k", 32), "DATABASE_URL": "postgres://localhost/events",
			}[name]
			return value, ok
		}})
		found = append(found, more...)
	}
	if !found.HasErrors() {
		return
	}
	var out bytes.Buffer
	if err := source.Print(&out, found); err != nil {
		t.Fatal(err)
	}
	t.Errorf("%s, the block at line %d:\n%s", page, line, out.String())
}

// shippedWithout returns the shipped resources less the blocks that text declares itself.
func shippedWithout(t *testing.T, text string) []byte {
	t.Helper()
	shipped, err := fs.ReadFile(pipelines.FS, "appliance.hcl")
	if err != nil {
		t.Fatal(err)
	}
	around, diags := hclwrite.ParseConfig(shipped, "around.hcl", hcl.InitialPos)
	own, more := hclwrite.ParseConfig([]byte(text), "fence.hcl", hcl.InitialPos)
	if diags.HasErrors() || more.HasErrors() {
		return shipped // Load reports it
	}
	for _, block := range own.Body().Blocks() {
		if twin := around.Body().FirstMatchingBlock(block.Type(), block.Labels()); twin != nil {
			around.Body().RemoveBlock(twin)
		}
	}
	return around.Bytes()
}
