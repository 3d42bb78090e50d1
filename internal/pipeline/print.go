package pipeline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

func sortDiagnostics(diags hcl.Diagnostics) {
	slices.SortStableFunc(diags, func(a, b *hcl.Diagnostic) int {
		x, y := subject(a), subject(b)
		return cmp.Or(cmp.Compare(x.Filename, y.Filename), cmp.Compare(x.Start.Line, y.Start.Line), cmp.Compare(x.Start.Column, y.Start.Column))
	})
}

func subject(d *hcl.Diagnostic) hcl.Range {
	if d.Subject == nil {
		return hcl.Range{}
	}
	return *d.Subject
}

// Print writes findings for people: place, severity, code, the line at fault with a marker under it, and the detail.
func (s *Source) Print(w io.Writer, diags hcl.Diagnostics) error {
	var out strings.Builder
	for _, d := range diags {
		at := subject(d)
		fmt.Fprintf(&out, "%s: %s: %s [%s]\n", place(at), severity(d), s.secrets.Hide(summary(d)), CodeOf(d))
		s.excerpt(&out, at)
		fmt.Fprintf(&out, "  %s\n\n", s.secrets.Hide(s.detail(d)))
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func place(at hcl.Range) string {
	if at.Start.Line == 0 {
		return at.Filename
	}
	return position(at)
}

func severity(d *hcl.Diagnostic) string {
	if d.Severity == hcl.DiagWarning {
		return "warning"
	}
	return "error"
}

// summary is the diagnostic's, or ours where HCL's says only where it happened.
func summary(d *hcl.Diagnostic) string {
	if CodeOf(d) == CodeUnset {
		return "Environment variable not set"
	}
	return d.Summary
}

// detail is the diagnostic's, reworded where HCL's own words would send the reader astray.
func (s *Source) detail(d *hcl.Diagnostic) string {
	call, isCall := hcl.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](d)
	if isCall && call.FunctionCallError() != nil {
		return fmt.Sprintf("%s: %v.", call.CalledFunctionName(), call.FunctionCallError())
	}
	if CodeOf(d) == CodeUnknownFunction && s.before(subject(d), "${!") {
		return d.Detail + " An interpolation of the engine is written $${! … } in HCL."
	}
	return d.Detail
}

// before reports whether the line holds the text before the range.
func (s *Source) before(at hcl.Range, text string) bool {
	line, ok := s.line(at)
	return ok && strings.Contains(line[:min(at.Start.Column, len(line))], text)
}

func (s *Source) line(at hcl.Range) (string, bool) {
	lines := strings.Split(string(s.texts[at.Filename]), "\n")
	if at.Start.Line < 1 || at.Start.Line > len(lines) {
		return "", false
	}
	return strings.TrimRight(lines[at.Start.Line-1], "\r"), true
}

// excerpt writes the line and marks the range. A line with a secret loses its marker, since columns have moved.
func (s *Source) excerpt(out *strings.Builder, at hcl.Range) {
	line, ok := s.line(at)
	if !ok || s.texts[at.Filename] == nil {
		return
	}
	shown := s.secrets.Hide(line)
	fmt.Fprintf(out, "%5d | %s\n", at.Start.Line, strings.ReplaceAll(shown, "\t", " "))
	if shown != line {
		return
	}
	width := 1
	if at.End.Line == at.Start.Line {
		width = max(1, at.End.Column-at.Start.Column)
	} else if rest := len([]rune(line)) - at.Start.Column + 1; rest > 0 {
		width = rest
	}
	fmt.Fprintf(out, "      | %s%s\n", strings.Repeat(" ", max(0, at.Start.Column-1)), strings.Repeat("^", width))
}

// The shape of Terraform's `validate -json`, and the code beside it.
type (
	jsonReport struct {
		FormatVersion string           `json:"format_version"`
		Valid         bool             `json:"valid"`
		ErrorCount    int              `json:"error_count"`
		WarningCount  int              `json:"warning_count"`
		Diagnostics   []jsonDiagnostic `json:"diagnostics"`
	}
	jsonDiagnostic struct {
		Severity string       `json:"severity"`
		Code     Code         `json:"code"`
		Summary  string       `json:"summary"`
		Detail   string       `json:"detail"`
		Range    *jsonRange   `json:"range,omitempty"`
		Snippet  *jsonSnippet `json:"snippet,omitempty"`
	}
	jsonRange struct {
		Filename string  `json:"filename"`
		Start    jsonPos `json:"start"`
		End      jsonPos `json:"end"`
	}
	jsonPos struct {
		Line   int `json:"line"`
		Column int `json:"column"`
		Byte   int `json:"byte"`
	}
	jsonSnippet struct {
		Context *string  `json:"context"` // the top-level block, null outside of one
		Code    string   `json:"code"`
		Line    int      `json:"start_line"`
		Start   int      `json:"highlight_start_offset"`
		End     int      `json:"highlight_end_offset"`
		Values  []string `json:"values"` // never filled: values may be secrets
	}
)

// PrintJSON writes findings in the shape of Terraform's `validate -json`, one object.
func (s *Source) PrintJSON(w io.Writer, diags hcl.Diagnostics) error {
	out := jsonReport{FormatVersion: "1.0", Diagnostics: []jsonDiagnostic{}}
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			out.ErrorCount++
		} else {
			out.WarningCount++
		}
		out.Diagnostics = append(out.Diagnostics, s.json(d))
	}
	out.Valid = out.ErrorCount == 0
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(out)
}

func (s *Source) json(d *hcl.Diagnostic) jsonDiagnostic {
	out := jsonDiagnostic{Severity: severity(d), Code: CodeOf(d), Summary: s.secrets.Hide(summary(d)), Detail: s.secrets.Hide(s.detail(d))}
	at := subject(d)
	if at.Start.Line == 0 {
		return out
	}
	out.Range = &jsonRange{at.Filename, jsonPos(at.Start), jsonPos(at.End)}
	line, ok := s.line(at)
	if !ok {
		return out
	}
	out.Snippet = &jsonSnippet{Code: s.secrets.Hide(line), Line: at.Start.Line, Values: []string{}, Context: s.enclosing(at)}
	if out.Snippet.Code == line {
		start := len(string([]rune(line)[:min(at.Start.Column-1, len([]rune(line)))]))
		out.Snippet.Start, out.Snippet.End = start, min(len(line), start+max(0, at.End.Byte-at.Start.Byte))
	}
	return out
}

// enclosing names the top-level block around a range.
func (s *Source) enclosing(at hcl.Range) *string {
	for _, b := range s.blocks {
		if r := b.Range(); r.Filename == at.Filename && r.Start.Byte <= at.Start.Byte && at.Start.Byte < r.End.Byte {
			title := blockTitle(b)
			return &title
		}
	}
	return nil
}
