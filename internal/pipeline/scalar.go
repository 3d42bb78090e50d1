package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// bind binds an operand to a field. It returns nil where the value is null, is not known because of an earlier error, or
// is refused.
func (b *binder) bind(f *field, o operand) *node {
	kind, isComponent := f.isComponent()
	switch {
	case f.is(kindArray), f.is(kindArrays):
		return b.list(f, o)
	case f.is(kindMap):
		return b.mapping(f, o)
	case isComponent:
		return b.componentValue(kind, o)
	case f.Type == typeObject && len(f.Children) > 0:
		return b.object(f, o)
	case f.Type == typeAny, f.Type == typeObject:
		return b.any(f, o)
	default:
		return b.scalar(f, o)
	}
}

func (b *binder) list(f *field, o operand) *node {
	items, known, ok, diags := o.elements(b.ctx)
	b.take(diags)
	if !known || diags.HasErrors() {
		return nil
	}
	if !ok {
		return b.mistyped(f, o, "a list in brackets")
	}
	n := &node{at: o.at, shape: list}
	for _, item := range items {
		if bound := b.bind(f.element(), item); bound != nil {
			n.items = append(n.items, bound)
		}
	}
	return n
}

func (b *binder) mapping(f *field, o operand) *node {
	pairs, known, ok, diags := o.pairs(b.ctx)
	b.take(diags)
	if !known || diags.HasErrors() {
		return nil
	}
	if !ok {
		return b.mistyped(f, o, "a map in braces")
	}
	n := &node{at: o.at, shape: object}
	for _, p := range pairs {
		item := b.bind(f.mapElement(), p.item)
		if n.own(p.key) != nil {
			b.fail(CodeDuplicateName, p.keyAt, "Duplicate name", "%q is given twice.", p.key)
			continue
		}
		n.add(p.key, item)
	}
	return n
}

// mapElement is the field of a map's values. Where they are strings, numbers and booleans are taken as their text, since
// what a map holds (properties, headers) has names of its own and no field that could say the type.
func (f *field) mapElement() *field {
	e := f.element()
	if e.Type == typeString {
		e.refers = anyText
	}
	return e
}

// anyText lets a string field take numbers and booleans.
const anyText = "text"

func (b *binder) object(f *field, o operand) *node {
	pairs, known, ok, diags := o.pairs(b.ctx)
	b.take(diags)
	if !known || diags.HasErrors() {
		return nil
	}
	if !ok {
		return b.mistyped(f, o, "an object in braces")
	}
	n, seen := &node{at: o.at, shape: object}, map[string]bool{}
	for _, p := range pairs {
		child := find(f.Children, p.key)
		if child == nil {
			b.unknownArgument(f.Children, p.key, p.keyAt, f.Name)
			continue
		}
		seen[p.key] = true
		b.deprecated(child, p.keyAt)
		n.add(p.key, b.bind(child, p.item))
	}
	for i := range f.Children {
		if c := &f.Children[i]; !seen[c.Name] && c.required() {
			b.fail(CodeMissingArgument, o.at, "Missing argument", "%s needs the argument %q.%s", f.Name, c.Name, c.says())
		}
	}
	return n
}

// any takes a value of any shape as it is.
func (b *binder) any(f *field, o operand) *node {
	v, diags := o.evaluate(b.ctx)
	b.take(diags)
	if diags.HasErrors() || !v.IsWhollyKnown() || v.IsNull() {
		return nil
	}
	if f.Type == typeObject && !v.Type().IsObjectType() && !v.Type().IsMapType() {
		return b.mistyped(f, o, "an object in braces")
	}
	b.learn(f, v)
	return fromValue(v, o.at)
}

// learn remembers secrets, also those that are so by their field and not by a call of secret.
func (b *binder) learn(f *field, v cty.Value) {
	if !f.Secret && !isSecret(v) {
		return
	}
	_ = cty.Walk(plain(v), func(_ cty.Path, part cty.Value) (bool, error) { // the callback never fails
		if part.IsKnown() && !part.IsNull() && part.Type() == cty.String {
			b.secrets.learn(part.AsString())
		}
		return true, nil
	})
}

func (b *binder) scalar(f *field, o operand) *node {
	v, diags := o.evaluate(b.ctx)
	b.take(diags)
	if diags.HasErrors() || !v.IsKnown() || v.IsNull() {
		return nil
	}
	if f.Type == typeReference {
		return b.reference(f, o, v)
	}
	b.learn(f, v)
	n := &node{at: o.at, secret: f.Secret || isSecret(v)}
	bare := plain(v)
	if why := b.convert(f, bare, n); why != "" {
		return b.mistyped(f, o, why)
	}
	if !b.admitted(f, n) {
		return nil
	}
	b.syntax(f, n, o)
	return n
}

// convert stores the value in the field's type, or returns what the field wants. Strings become numbers and booleans,
// since the environment has only strings; a number does not become a string, since that is mostly a missing unit.
func (b *binder) convert(f *field, v cty.Value, n *node) (wants string) {
	switch f.Type {
	case typeString:
		if v.Type() != cty.String && f.refers != anyText {
			return "a string"
		}
		return into(n, v, cty.String, "a string")
	case typeBool:
		return into(n, v, cty.Bool, "true or false")
	case typeInt:
		if wants := into(n, v, cty.Number, "a whole number"); wants != "" {
			return wants
		}
		if i, acc := n.value.AsBigFloat().Int64(); acc != 0 || i < -1<<53 || i > 1<<53 {
			return "a whole number"
		}
		return ""
	case typeFloat:
		return into(n, v, cty.Number, "a number")
	case typeDuration:
		return intoDuration(n, v)
	default:
		return "a " + f.Type
	}
}

func into(n *node, v cty.Value, t cty.Type, wants string) string {
	if v.Type() == cty.Bool && t == cty.Number || !v.Type().IsPrimitiveType() {
		return wants
	}
	out, err := convert.Convert(v, t)
	if err != nil {
		return wants
	}
	n.value = out
	return ""
}

func intoDuration(n *node, v cty.Value) string {
	const wants = `a duration, such as "250ms" or "5 seconds"`
	if v.Type() != cty.String {
		return wants
	}
	d, err := ParseDuration(v.AsString())
	if err != nil {
		return wants
	}
	n.value = cty.StringVal(d.String())
	return ""
}

// admitted checks an enumeration as the engine does, ignoring case, and what the field itself refuses.
func (b *binder) admitted(f *field, n *node) bool {
	given, choices := n.text(), f.choices()
	if len(choices) > 0 && !slices.ContainsFunc(choices, func(c string) bool { return strings.EqualFold(c, given) }) {
		shown := hidden
		if !n.secret {
			shown = fmt.Sprintf("%q", given)
		}
		b.fail(CodeInvalidValue, n.at, "Invalid value", "%s must be one of %s, not %s.%s", f.Name, quoted(choices), shown, didYouMean(given, choices))
		return false
	}
	if f.refuse == nil {
		return true
	}
	if why := f.refuse(native(n.value)); why != "" {
		b.fail(CodeInvalidValue, n.at, "Invalid value", "%s %s.", f.Name, why)
		return false
	}
	return true
}

func quoted(names []string) string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(out, ", ")
}

// native returns a leaf's value in Go: string, float64 or bool.
func native(v cty.Value) any {
	switch v.Type() {
	case cty.Number:
		f, _ := v.AsBigFloat().Float64()
		return f
	case cty.Bool:
		return v.True()
	default:
		return v.AsString()
	}
}

// reference takes a resource of the kind that the field names.
func (b *binder) reference(f *field, o operand, v cty.Value) *node {
	ref, ok := referenceOf(v)
	if !ok {
		return b.mistyped(f, o, "a resource, such as "+f.refers+".main")
	}
	if ref.Kind != f.refers {
		b.fail(CodeWrongType, o.at, "Wrong kind of resource", "%s takes a %s, and %s is a %s.", f.Name, f.refers, ref, ref.Kind)
		return nil
	}
	b.uses = append(b.uses, use{ref, o.at})
	return &node{at: o.at, value: cty.StringVal(ref.Name), refers: ref}
}
