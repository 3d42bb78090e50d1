package pipeline

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"
)

// mistyped reports what was wanted and what was found, never the value itself.
func (b *binder) mistyped(f *field, o operand, wants string) *node {
	found := ""
	if v, diags := o.evaluate(b.ctx); !diags.HasErrors() && v.IsKnown() {
		found = ", not " + friendly(v)
	}
	name := f.Name
	if name == "" {
		name = "The value"
	}
	b.fail(CodeWrongType, o.at, "Wrong type", "%s must be %s%s.", name, wants, found)
	return nil
}

// maxShown bounds a value that a finding repeats: a longer one is in the excerpt.
const maxShown = 40

// friendly says what a value is: itself, where it is short and no secret.
func friendly(v cty.Value) string {
	if ref, ok := referenceOf(v); ok {
		return "the resource " + ref.String()
	}
	bare := &node{value: plain(v)}
	switch t := v.Type(); {
	case bare.value.IsNull():
		return "null"
	case t.IsTupleType() || t.IsListType() || t.IsSetType():
		return "a list"
	case t.IsObjectType() || t.IsMapType():
		return "an object"
	case isSecret(v) || len(bare.text()) > maxShown:
		return "a " + t.FriendlyName()
	case t == cty.String:
		return fmt.Sprintf("%q", bare.text())
	default:
		return bare.text()
	}
}
