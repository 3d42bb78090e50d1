package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/hashicorp/hcl/v2"
)

// report collects what is found.
type report struct{ diags hcl.Diagnostics }

func (r *report) add(severity hcl.DiagnosticSeverity, code Code, at hcl.Range, summary, detail string) {
	r.diags = append(r.diags, &hcl.Diagnostic{Severity: severity, Summary: summary, Detail: detail, Subject: &at, Extra: code})
}

func (r *report) fail(code Code, at hcl.Range, summary, format string, args ...any) {
	r.add(hcl.DiagError, code, at, summary, fmt.Sprintf(format, args...))
}

func (r *report) warn(code Code, at hcl.Range, summary, format string, args ...any) {
	r.add(hcl.DiagWarning, code, at, summary, fmt.Sprintf(format, args...))
}

func (r *report) take(diags hcl.Diagnostics) { r.diags = append(r.diags, diags...) }

// failed reports whether an error has been found.
func (r *report) failed() bool { return r.diags.HasErrors() }

// didYouMean returns a sentence with the nearest of names, "" where none is near.
func didYouMean(given string, names []string) string {
	if best := Nearest(given, names); best != "" {
		return fmt.Sprintf(" Did you mean %q?", best)
	}
	return ""
}

// Nearest returns the name that a typing error would have turned into given, "" where none is near: a third of its letters
// may differ.
func Nearest(given string, names []string) string {
	best, bound := "", max(1, len(given)/3)+1
	sorted := slices.Sorted(slices.Values(names))
	for _, name := range sorted {
		if d := levenshtein.Distance(strings.ToLower(given), strings.ToLower(name), nil); d < bound {
			best, bound = name, d
		}
	}
	return best
}

// position gives where something else is, for details that name two places.
func position(r hcl.Range) string {
	return fmt.Sprintf("%s:%d:%d", r.Filename, r.Start.Line, r.Start.Column)
}
