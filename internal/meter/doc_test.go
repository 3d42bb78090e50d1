package meter

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

var update = flag.Bool("update", false, "write docs/metrics.md")

const page = "../../docs/metrics.md"

func TestTheMetricsPageIsCurrent(t *testing.T) {
	var want bytes.Buffer
	if err := WriteDoc(&want); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(page, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("docs/metrics.md is not current: go test ./internal/meter -update")
	}
}

func TestEveryDefinitionIsARowOfThePage(t *testing.T) {
	var page strings.Builder
	if err := WriteDoc(&page); err != nil {
		t.Fatal(err)
	}
	for _, d := range Definitions() {
		if n := strings.Count(page.String(), "\n| `"+d.Name+"` | "); n != 1 {
			t.Errorf("%s has %d rows", d.Name, n)
		}
		if strings.ContainsAny(d.Meaning+d.Values, "|\n") {
			t.Errorf("%s would break its row", d.Name)
		}
		if (len(d.Labels) == 0) != (d.Values == "") {
			t.Errorf("%s: labels %v, values %q", d.Name, d.Labels, d.Values)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestAPageThatCouldNotBeWrittenIsAnError(t *testing.T) {
	if err := WriteDoc(full{}); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("WriteDoc: %v", err)
	}
}

func TestTheNamesFollowPrometheusConventions(t *testing.T) {
	families, err := fresh().Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
