package pipeline

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Argument is one argument as a configuration writes it, for documentation.
type Argument struct {
	Path      string   // where it stands: "kafka.main.brokers", "pipeline.persist.input.batch.size"
	Variables []string // of the environment, that its expression reads, in order
	Default   string   // what it is without them: the default of the first, or the expression as it is written
	Notes     string   // the comment above it, one paragraph
	File      string
}

// Arguments lists every argument of a configuration that is no reference, in the order of files and lines. The default of
// a variable is what env() gives without it.
func Arguments(s *Source) []Argument {
	var out []Argument
	for _, block := range s.blocks {
		out = append(out, s.arguments(block.Type+labelPath(block), block.Body)...)
	}
	return out
}

func labelPath(block *hclsyntax.Block) string {
	if len(block.Labels) == 0 {
		return ""
	}
	return "." + strings.Join(block.Labels, ".")
}

func (s *Source) arguments(path string, body *hclsyntax.Body) []Argument {
	type placed struct {
		at   hcl.Pos
		rows []Argument
	}
	var all []placed
	for _, attr := range body.Attributes {
		if row, ok := s.argument(path, attr); ok {
			all = append(all, placed{attr.NameRange.Start, []Argument{row}})
		}
	}
	for _, block := range body.Blocks {
		all = append(all, placed{block.TypeRange.Start, s.arguments(path+"."+block.Type+labelPath(block), block.Body)})
	}
	slices.SortFunc(all, func(a, b placed) int { return a.at.Byte - b.at.Byte })
	var out []Argument
	for _, p := range all {
		out = append(out, p.rows...)
	}
	return out
}

func (s *Source) argument(path string, attr *hclsyntax.Attribute) (Argument, bool) {
	row := Argument{Path: path + "." + attr.Name, File: attr.NameRange.Filename, Notes: s.comment(attr.NameRange)}
	calls := envCalls(attr.Expr)
	for _, call := range calls {
		if name, ok := literal(call.Args, 0); ok && !slices.Contains(row.Variables, name) {
			row.Variables = append(row.Variables, name)
		}
	}
	if len(calls) == 0 && len(attr.Expr.Variables()) > 0 || strings.HasPrefix(path, blockVariable+".") && attr.Name != "default" {
		return row, false
	}
	row.Default = strings.Trim(string(attr.Expr.Range().SliceBytes(s.texts[row.File])), `"`)
	if len(calls) > 0 {
		row.Default = s.withoutEnvironment(attr.Expr, calls)
	}
	if row.Notes == "" {
		row.Notes = s.description(path, attr)
	}
	return row, true
}

// withoutEnvironment is what an expression gives where no variable is set: the default as it is written, where the
// expression does no more than read and convert it, and otherwise its value.
func (s *Source) withoutEnvironment(expr hclsyntax.Expression, calls []*hclsyntax.FunctionCallExpr) string {
	if outer, ok := expr.(*hclsyntax.FunctionCallExpr); ok && slices.Contains([]string{"env", "secret", "duration", "split"}, outer.Name) {
		return defaultOf(calls[0])
	}
	unset := func(string) (string, bool) { return "", false }
	v, diags := expr.Value(&hcl.EvalContext{Functions: functions(unset, s.dir, s.secrets)})
	if diags.HasErrors() || !v.IsWhollyKnown() {
		return ""
	}
	return (&node{value: plain(v)}).text()
}

// defaultOf follows env(A, env(B, "x")) to "x".
func defaultOf(call *hclsyntax.FunctionCallExpr) string {
	if text, ok := literal(call.Args, 1); ok {
		return text
	}
	if len(call.Args) > 1 {
		if inner := envCalls(call.Args[1]); len(inner) > 0 {
			return defaultOf(inner[0])
		}
	}
	return ""
}

// envCalls returns the calls of env in an expression, outermost first.
func envCalls(expr hclsyntax.Expression) []*hclsyntax.FunctionCallExpr {
	var calls []*hclsyntax.FunctionCallExpr
	_ = hclsyntax.VisitAll(expr, func(n hclsyntax.Node) hcl.Diagnostics { // the visitor never fails
		if call, ok := n.(*hclsyntax.FunctionCallExpr); ok && call.Name == "env" {
			calls = append(calls, call)
		}
		return nil
	})
	return calls
}

func literal(args []hclsyntax.Expression, i int) (string, bool) {
	if i >= len(args) {
		return "", false
	}
	v, diags := args[i].Value(nil)
	if diags.HasErrors() || v.IsNull() || !v.IsKnown() || v.Type() != cty.String {
		return "", false
	}
	return v.AsString(), true
}

// comment returns the lines of # directly above a place.
func (s *Source) comment(at hcl.Range) string {
	lines := strings.Split(string(s.texts[at.Filename]), "\n")
	var words []string
	for i := at.Start.Line - 2; i >= 0; i-- {
		text, ok := strings.CutPrefix(strings.TrimSpace(lines[i]), "#")
		if !ok {
			break
		}
		words = append([]string{strings.TrimSpace(text)}, words...)
	}
	return strings.Join(words, " ")
}

// description is what a variable block says of itself, and what the language says of an argument of its own blocks.
func (s *Source) description(path string, attr *hclsyntax.Attribute) string {
	parts := strings.Split(path, ".")
	for _, block := range s.blocks {
		if block.Type == blockVariable && path == blockVariable+labelPath(block) {
			if d := block.Body.Attributes["description"]; d != nil {
				text, _ := literal([]hclsyntax.Expression{d.Expr}, 0)
				return text
			}
		}
	}
	for _, top := range topBlocks() {
		if top.name == parts[0] && top.label == "" && len(parts) > 1 || top.name == parts[0] && len(parts) > 2 {
			return ""
		}
		if f := find(top.fields, attr.Name); top.name == parts[0] && f != nil {
			return f.Description
		}
	}
	return ""
}
