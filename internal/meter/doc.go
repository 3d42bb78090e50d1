package meter

import (
	"fmt"
	"io"
	"strings"
)

const preface = `# Metrics

Generated from internal/meter; a test says when it is not current.

GET /metrics serves these without a token. Every series carries the constant labels ` + "`service`, `version` and `instance`" + `.
A gauge whose reading did not arrive is NaN, or has no series; it never keeps its last value. Beside these there are the
Go runtime's ` + "`go_*`" + ` and the process's ` + "`process_*`" + `, with ` + "`service` and `instance`" + ` alone.

| metric | type | labels | meaning |
|---|---|---|---|
`

// WriteDoc writes docs/metrics.md: one row per definition.
func WriteDoc(w io.Writer) error {
	var page strings.Builder
	page.WriteString(preface)
	for _, d := range Definitions() {
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", d.Name, d.Kind, labelsCell(d), d.Meaning)
	}
	if _, err := io.WriteString(w, page.String()); err != nil {
		return fmt.Errorf("write metrics page: %w", err)
	}
	return nil
}

func labelsCell(d Definition) string {
	if len(d.Labels) == 0 {
		return "–"
	}
	return "`" + strings.Join(d.Labels, "`, `") + "` – " + d.Values
}
