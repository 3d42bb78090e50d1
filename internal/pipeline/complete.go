package pipeline

import (
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// complete returns a block's node with every default filled in, in the order of its fields. Objects that are optional
// stay absent; components are left as they are.
func complete(fields []field, n *node) *node {
	out := &node{at: n.at, shape: object}
	for i := range fields {
		f := &fields[i]
		given := n.get(f.Name)
		switch {
		case f.Type == typeObject && f.is(kindScalar) && given != nil:
			out.add(f.Name, complete(f.Children, given))
		case given != nil:
			out.add(f.Name, given)
		case f.Type == typeObject && f.is(kindScalar) && !f.Optional:
			out.add(f.Name, complete(f.Children, &node{at: n.at, shape: object}))
		default:
			out.add(f.Name, f.fallback(n.at))
		}
	}
	return out
}

func (f *field) fallback(at hcl.Range) *node {
	n := fromJSON(f.Default, at)
	if n != nil {
		n.secret = f.Secret
	}
	return n
}

// toValue returns a node as a value for expressions: a secret is marked, and so is the whole as ref.
func (n *node) toValue(ref Reference) cty.Value {
	return n.bare().Mark(referenceMark{ref})
}

func (n *node) bare() cty.Value {
	switch n.shape {
	case object:
		attrs := map[string]cty.Value{}
		for _, m := range n.members {
			attrs[m.name] = m.node.bare()
		}
		return cty.ObjectVal(attrs)
	case list:
		var items []cty.Value
		for _, item := range n.items {
			items = append(items, item.bare())
		}
		return cty.TupleVal(items)
	case leaf:
		if n.secret {
			return n.value.Mark(secretMark{})
		}
	}
	return n.value
}

// The readers of a completed node. The binder has ensured types, so a value of another type cannot be here; one that was
// refused is absent, and then the configuration as a whole is refused.

func (n *node) str(path string) string { return n.get(path).text() }

func (n *node) num(path string) int {
	found := n.get(path)
	if found == nil || found.value.Type() != cty.Number {
		return 0
	}
	i, _ := found.value.AsBigFloat().Int64()
	return int(i)
}

func (n *node) decimal(path string) float64 {
	found := n.get(path)
	if found == nil || found.value.Type() != cty.Number {
		return 0
	}
	f, _ := found.value.AsBigFloat().Float64()
	return f
}

func (n *node) flag(path string) bool {
	found := n.get(path)
	return found != nil && found.value.Type() == cty.Bool && found.value.True()
}

func (n *node) dur(path string) time.Duration {
	d, err := ParseDuration(n.str(path))
	if err != nil {
		return 0
	}
	return d
}
