package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// scope is what expressions can see: roots such as var and kafka, each an object of names. A name whose block was
// refused stands for an unknown value, so that one mistake is reported once.
type scope struct {
	roots     map[string]map[string]cty.Value
	functions map[string]function.Function
	declared  map[string]map[string]hcl.Range // variables and locals, to find the unused
	used      map[string]map[string]bool
}

// The roots of references.
const (
	rootVar      = "var"
	rootLocal    = "local"
	rootPipeline = "pipeline"
)

// variablePrefix begins the name of an environment variable that gives a value to a variable of the language.
const variablePrefix = "APPLIANCE_VAR_"

func newScope(functions map[string]function.Function) *scope {
	s := &scope{functions: functions, roots: map[string]map[string]cty.Value{}, declared: map[string]map[string]hcl.Range{}, used: map[string]map[string]bool{}}
	for _, root := range []string{rootVar, rootLocal, blockKafka, blockPostgres, blockDeadLetters, blockTopic, rootPipeline} {
		s.roots[root] = map[string]cty.Value{}
	}
	return s
}

func (s *scope) set(root, name string, v cty.Value) { s.roots[root][name] = v }

func (s *scope) declare(root, name string, at hcl.Range) {
	if s.declared[root] == nil {
		s.declared[root] = map[string]hcl.Range{}
	}
	s.declared[root][name] = at
}

// context returns the scope as HCL takes it.
func (s *scope) context() *hcl.EvalContext {
	vars := map[string]cty.Value{}
	for root, names := range s.roots {
		vars[root] = cty.ObjectVal(names)
	}
	return &hcl.EvalContext{Variables: vars, Functions: s.functions}
}

// check reports references to what no block declares, with a suggestion, and notes what is used. HCL would report them
// at evaluation, without one. A reference that was reported evaluates to unknown afterwards.
func (s *scope) check(r *report, body *hclsyntax.Body) {
	_ = hclsyntax.VisitAll(body, func(n hclsyntax.Node) hcl.Diagnostics { // the visitor reports by itself
		if t, ok := n.(*hclsyntax.ScopeTraversalExpr); ok {
			s.reference(r, t.Traversal)
		}
		return nil
	})
}

func (s *scope) reference(r *report, t hcl.Traversal) {
	root := t.RootName()
	names, known := s.roots[root]
	if !known || len(t) < 2 {
		return // an iteration variable, or one that HCL reports
	}
	step, ok := t[1].(hcl.TraverseAttr)
	if !ok {
		return
	}
	if _, exists := names[step.Name]; exists {
		if s.used[root] == nil {
			s.used[root] = map[string]bool{}
		}
		s.used[root][step.Name] = true
		return
	}
	hint := didYouMean(root+"."+step.Name, s.qualified(root))
	if hint == "" && len(names) == 0 {
		hint = fmt.Sprintf(" No block declares any %s.", rootTitle(root))
	}
	r.fail(CodeUnknownReference, t.SourceRange(), "Unknown reference", "Nothing declares %s.%s.%s", root, step.Name, hint)
	names[step.Name] = cty.DynamicVal
}

func rootTitle(root string) string {
	if root == rootVar {
		return blockVariable
	}
	return root
}

func (s *scope) qualified(root string) []string {
	var out []string
	for name := range s.roots[root] {
		out = append(out, root+"."+name)
	}
	return out
}

// unused warns of variables and locals that nothing refers to.
func (s *scope) unused(r *report) {
	for _, root := range []string{rootVar, rootLocal} {
		var names []string
		for name := range s.declared[root] {
			if !s.used[root][name] {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			r.warn(CodeUnused, s.declared[root][name], "Unused", "Nothing refers to %s.%s.", root, name)
		}
	}
}

// variable evaluates a variable block: given, if it is set from outside, else its default.
func (s *scope) variable(r *report, block *hclsyntax.Block, given func(string) (string, bool)) {
	name := block.Labels[0]
	s.declare(rootVar, name, block.DefRange())
	s.set(rootVar, name, cty.DynamicVal)
	wanted, ok := variableType(r, block)
	if !ok {
		return
	}
	value, at, ok := s.variableValue(r, block, wanted, given)
	if ok {
		s.convertVariable(r, name, value, wanted, at)
	}
}

// variableValue returns what is given from outside, else the default, and where that is written. What is given is the text
// of a string, number or boolean, and for a list or an object an expression: APPLIANCE_VAR_names='["a", "b"]'.
func (s *scope) variableValue(r *report, block *hclsyntax.Block, wanted cty.Type, given func(string) (string, bool)) (cty.Value, hcl.Range, bool) {
	name, at := block.Labels[0], block.DefRange()
	if text, set := given(name); set && (wanted.IsPrimitiveType() || wanted == cty.DynamicPseudoType) {
		return cty.StringVal(text), at, true
	} else if set {
		v, ok := expression(text)
		if !ok {
			r.fail(CodeWrongType, at, "Wrong type", "variable %q is given a text that is no %s.", name, wanted.FriendlyName())
		}
		return v, at, ok
	}
	attr := block.Body.Attributes["default"]
	if attr == nil {
		r.fail(CodeMissingArgument, at, "Variable without a value", "variable %q has no default, and %s%s is not set.", name, variablePrefix, name)
		return cty.NilVal, at, false
	}
	v, diags := attr.Expr.Value(&hcl.EvalContext{Functions: s.functions}) // no references: the order of blocks has no meaning
	r.take(diags)
	return v, attr.Expr.Range(), !diags.HasErrors()
}

// expression evaluates a text that nobody wrote in a file. What is wrong with it is not repeated: it may be a secret.
func expression(text string) (cty.Value, bool) {
	expr, diags := hclsyntax.ParseExpression([]byte(text), "given", hcl.InitialPos)
	if diags.HasErrors() {
		return cty.NilVal, false
	}
	v, diags := expr.Value(nil)
	return v, !diags.HasErrors()
}

func (s *scope) convertVariable(r *report, name string, value cty.Value, wanted cty.Type, at hcl.Range) {
	if wanted == cty.String && value.IsKnown() && value.Type() != cty.String && !value.IsNull() {
		r.fail(CodeWrongType, at, "Wrong type", "variable %q must be a string, not %s.", name, friendly(value))
		return
	}
	out, err := convert.Convert(value, wanted)
	if err != nil {
		r.fail(CodeWrongType, at, "Wrong type", "variable %q must be of type %s.", name, wanted.FriendlyName())
		return
	}
	s.set(rootVar, name, out)
}

func variableType(r *report, block *hclsyntax.Block) (cty.Type, bool) {
	attr := block.Body.Attributes["type"]
	if attr == nil {
		return cty.DynamicPseudoType, true
	}
	t, diags := typeexpr.TypeConstraint(attr.Expr)
	r.take(diags)
	return t, !diags.HasErrors()
}

// variableFields is what a variable block may hold; the type is a type and no value.
func variableFields(r *report, block *hclsyntax.Block) bool {
	known := []string{"type", "default", "description"}
	before := len(r.diags)
	for _, attr := range inOrder(block.Body.Attributes) {
		if !slices.Contains(known, attr.Name) {
			r.fail(CodeUnknownArgument, attr.NameRange, "Unsupported argument", "%s has no argument %q. It has %s.%s",
				blockTitle(block), attr.Name, strings.Join(known, ", "), didYouMean(attr.Name, known))
		}
	}
	for _, nested := range block.Body.Blocks {
		r.fail(CodeUnknownBlock, nested.TypeRange, "Unsupported block", "%s has no blocks.", blockTitle(block))
	}
	return len(r.diags) == before
}

// locals evaluates a locals block's attributes, in whatever order they refer to each other.
func (s *scope) locals(r *report, attrs []*hclsyntax.Attribute) {
	for _, a := range attrs {
		s.declare(rootLocal, a.Name, a.NameRange)
		s.set(rootLocal, a.Name, cty.DynamicVal)
	}
	for _, a := range attrs {
		s.check(r, &hclsyntax.Body{Attributes: hclsyntax.Attributes{a.Name: a}})
	}
	for pending := attrs; len(pending) > 0; {
		var later []*hclsyntax.Attribute
		for _, a := range pending {
			if waits(a, pending) {
				later = append(later, a)
				continue
			}
			v, diags := a.Expr.Value(s.context())
			r.take(diags)
			if !diags.HasErrors() {
				s.set(rootLocal, a.Name, v)
			}
		}
		if len(later) == len(pending) {
			r.fail(CodeExpression, later[0].NameRange, "Circular reference", "local.%s refers to itself, by way of others or at once.", later[0].Name)
			return
		}
		pending = later
	}
}

func waits(a *hclsyntax.Attribute, pending []*hclsyntax.Attribute) bool {
	for _, t := range a.Expr.Variables() {
		if t.RootName() != rootLocal || len(t) < 2 {
			continue
		}
		step, ok := t[1].(hcl.TraverseAttr)
		if ok && slices.ContainsFunc(pending, func(p *hclsyntax.Attribute) bool { return p.Name == step.Name }) {
			return true
		}
	}
	return false
}
