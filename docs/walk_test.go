package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Each place that walk.md names, as `file` `name`, is there.
func TestTheWalkIsTrue(t *testing.T) {
	text, err := os.ReadFile("walk.md")
	if err != nil {
		t.Fatal(err)
	}
	places := regexp.MustCompile("`([a-z/]+\\.go)` `([A-Za-z]+)`").FindAllStringSubmatch(string(text), -1)
	if len(places) < 15 {
		t.Fatalf("only %d places found: has the form changed?", len(places))
	}
	for _, p := range places {
		code, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(p[1])))
		if err != nil {
			t.Error(err)
			continue
		}
		named := regexp.MustCompile(`(?m)^(func (\([^)]*\) )?` + p[2] + `\(|type ` + p[2] + ` )`)
		if !named.Match(code) {
			t.Errorf("%s has no %s", p[1], p[2])
		}
	}
}
