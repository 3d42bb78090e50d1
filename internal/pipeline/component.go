package pipeline

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// boundComponent is one component of a pipeline, at any depth.
type boundComponent struct {
	kind Kind
	name string
	at   hcl.Range
	body *node // its own configuration, without label and processors beside it
}

// rootArgument is how the configuration of a component is written that is a single value, such as a mapping.
const rootArgument = "value"

// component binds a labelled block: the arguments of the component, and beside them those that every component of its
// kind takes. The node has the engine's shape: { label, NAME: configuration, processors }.
func (b *binder) component(kind Kind, name string, at hcl.Range, block *hclsyntax.Block) *node {
	spec, ok := b.lookup(kind, name, at)
	if !ok {
		return nil
	}
	own, wrapped := spec.arguments()
	beside := besides(kind, own)
	bound := b.body(append(beside, own...), block.Body, block.DefRange(), blockTitle(block))
	n := &node{at: block.DefRange(), shape: object}
	config := &node{at: bound.at, shape: object}
	for _, m := range bound.members {
		if find(beside, m.name) == nil {
			config.members = append(config.members, m)
		}
	}
	if wrapped {
		config = config.get(own[0].Name)
	}
	if config == nil { // a single value that was missing or refused
		return nil
	}
	n.add("label", bound.beside(beside, "label"))
	n.add(name, config)
	n.add("processors", bound.beside(beside, "processors"))
	b.components = append(b.components, boundComponent{kind, name, block.DefRange(), config})
	return n
}

// beside returns a member that is one of the fields beside the component's own.
func (n *node) beside(fields []field, name string) *node {
	if find(fields, name) == nil {
		return nil
	}
	return n.get(name)
}

func (b *binder) lookup(kind Kind, name string, at hcl.Range) (component, bool) {
	spec, ok := b.specs[kind][name]
	if !ok {
		hint := didYouMean(name, b.specs.names(kind))
		for other, of := range b.specs {
			if _, exists := of[name]; exists && other != kind && hint == "" {
				hint = fmt.Sprintf(" There is %s %q.", other, name)
			}
		}
		b.fail(CodeUnknownComponent, at, "Unknown component", "There is no %s %q.%s", kind, name, hint)
		return spec, false
	}
	if spec.Status == "deprecated" {
		b.warn(CodeDeprecated, at, "Deprecated component", "The engine keeps %s %q for old configurations.", kind, name)
	}
	return spec, true
}

// arguments returns the fields of the component's block. Where its configuration is no object but one value, wrapped is
// true and there is one field: "value" for a scalar, and for components and objects a list of blocks.
func (c component) arguments() (fields []field, wrapped bool) {
	root := c.Config
	kind, isComponent := root.isComponent()
	switch {
	case isComponent && root.is(kindArray):
		root.Name = string(kind) + "s"
	case isComponent:
		root.Name = string(kind)
	case root.Type == typeObject && root.is(kindArray):
		root.Name = map[string]string{"switch": "cases", "group_by": "groups"}[c.Name]
		if root.Name == "" {
			root.Name = "items"
		}
	case root.Type == typeObject && !root.is(kindMap):
		return root.Children, false
	default:
		root.Name = rootArgument
	}
	return []field{root}, true
}

// besides returns what the engine lets stand beside a component's configuration, unless it has such an argument itself.
func besides(kind Kind, own []field) []field {
	var out []field
	if find(own, "label") == nil && kind != Scanner {
		out = append(out, field{Name: "label", Type: typeString, Kind: kindScalar, Optional: true})
	}
	if find(own, "processors") == nil && (kind == Input || kind == Output) {
		out = append(out, field{Name: "processors", Type: string(Processor), Kind: kindArray, Optional: true})
	}
	return out
}

// componentValue binds a component that is written as a value, in the engine's own shape: { NAME = configuration }.
func (b *binder) componentValue(kind Kind, o operand) *node {
	pairs, known, ok, diags := o.pairs(b.ctx)
	b.take(diags)
	if !known || diags.HasErrors() {
		return nil
	}
	if !ok {
		b.fail(CodeWrongType, o.at, "Wrong type", "A %s is written as a block, or as { NAME = { … } }.", kind)
		return nil
	}
	n, named := &node{at: o.at, shape: object}, false
	for _, p := range pairs {
		if f := find(besides(kind, nil), p.key); f != nil {
			n.add(p.key, b.bind(f, p.item))
			continue
		}
		if named {
			b.fail(CodeUnknownArgument, p.keyAt, "Unsupported argument", "A %s has one name, and %q is a second.", kind, p.key)
			continue
		}
		named = true
		b.namedValue(kind, p, n)
	}
	if !named {
		b.fail(CodeMissingArgument, o.at, "Missing argument", "A %s needs the name of its component.", kind)
	}
	return n
}

func (b *binder) namedValue(kind Kind, p pair, n *node) {
	spec, ok := b.lookup(kind, p.key, p.keyAt)
	if !ok {
		return
	}
	root := spec.Config
	root.Name = p.key
	config := b.bind(&root, p.item)
	if config == nil {
		return
	}
	n.add(p.key, config)
	b.components = append(b.components, boundComponent{kind, p.key, p.keyAt, config})
}
