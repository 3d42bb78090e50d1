package pipeline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// binder checks what was written against what is described, and keeps what was written.
type binder struct {
	report
	specs   specs
	ctx     *hcl.EvalContext
	sources map[string][]byte // text of each file, for positions inside heredocs
	secrets *Secrets

	uses       []use            // references that were bound, in the order of the text
	components []boundComponent // components at any depth, likewise
}

type use struct {
	to Reference
	at hcl.Range
}

// body binds a block's arguments and blocks to fields. header is where its absence of something is reported.
func (b *binder) body(fields []field, body *hclsyntax.Body, header hcl.Range, what string) *node {
	n := &node{at: header, shape: object}
	parts := map[string]*node{}
	for _, attr := range inOrder(body.Attributes) {
		b.attribute(fields, attr, parts, what)
	}
	b.blocks(fields, body.Blocks, parts, what)
	for i := range fields {
		f := &fields[i]
		part, given := parts[f.Name]
		if !given && f.required() {
			b.fail(CodeMissingArgument, header, "Missing argument", "%s needs %s.%s", what, f.article(), f.says())
		}
		n.add(f.Name, part)
	}
	return n
}

// inOrder returns attributes as they were written; HCL keeps them in a map.
func inOrder(attrs hclsyntax.Attributes) []*hclsyntax.Attribute {
	var out []*hclsyntax.Attribute
	for _, a := range attrs {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b *hclsyntax.Attribute) int { return a.NameRange.Start.Byte - b.NameRange.Start.Byte })
	return out
}

// attribute binds one name = value. A part that could not be bound is kept as nil, so that it isn't also missing.
func (b *binder) attribute(fields []field, attr *hclsyntax.Attribute, parts map[string]*node, what string) {
	f := find(fields, attr.Name)
	if f == nil {
		b.unknownArgument(fields, attr.Name, attr.NameRange, what)
		return
	}
	b.deprecated(f, attr.NameRange)
	parts[f.Name] = b.bind(f, written(attr.Expr))
}

func find(fields []field, name string) *field {
	for i := range fields {
		if fields[i].Name == name {
			return &fields[i]
		}
	}
	return nil
}

func (b *binder) unknownArgument(fields []field, name string, at hcl.Range, what string) {
	hint := cmp.Or(didYouMean(name, argumentNames(fields)), elsewhere(fields, name))
	for i := range fields {
		if f := &fields[i]; f.isBlock() && slices.Contains(f.blockNames(), name) {
			hint = fmt.Sprintf(" It is written as blocks: %s.", f.blockForm(f.blockNames()[0]))
		}
	}
	if hint == "" && len(fields) > 0 && len(fields) <= 12 {
		hint = " It has " + strings.Join(argumentNames(fields), ", ") + "."
	}
	b.fail(CodeUnknownArgument, at, "Unsupported argument", "%s has no argument %q.%s", what, name, hint)
}

// elsewhere suggests for a name that joins a block's and an argument's: batch_size for size in batch, inside or outside.
func elsewhere(fields []field, name string) string {
	for i := range fields {
		if strings.HasSuffix(name, "_"+fields[i].Name) {
			return fmt.Sprintf(" Did you mean %q?", fields[i].Name)
		}
	}
	joined := map[string]string{}
	for i := range fields {
		for _, child := range fields[i].Children {
			joined[fields[i].Name+"_"+child.Name] = fmt.Sprintf(" Did you mean %q in the block %s?", child.Name, fields[i].Name)
		}
	}
	return joined[Nearest(name, slices.Collect(maps.Keys(joined)))]
}

func argumentNames(fields []field) []string {
	var names []string
	for i := range fields {
		names = append(names, fields[i].Name)
	}
	return names
}

func (b *binder) deprecated(f *field, at hcl.Range) {
	if f.Deprecated {
		b.warn(CodeDeprecated, at, "Deprecated argument", "%s is kept for old configurations and will go.", f.Name)
	}
}

// blocks binds nested blocks, each to the field that is written by its type.
func (b *binder) blocks(fields []field, blocks hclsyntax.Blocks, parts map[string]*node, what string) {
	for _, block := range blocks {
		f := byBlock(fields, block.Type)
		if f == nil {
			b.unknownBlock(fields, block, what)
			continue
		}
		b.deprecated(f, block.TypeRange)
		b.nested(f, block, parts)
	}
}

func byBlock(fields []field, name string) *field {
	for i := range fields {
		if f := &fields[i]; f.isBlock() && slices.Contains(f.blockNames(), name) {
			return f
		}
	}
	return nil
}

func (b *binder) unknownBlock(fields []field, block *hclsyntax.Block, what string) {
	if f := find(fields, block.Type); f != nil {
		b.fail(CodeUnknownBlock, block.TypeRange, "Unsupported block", "%s is an argument: write %s = ….", f.Name, f.Name)
		return
	}
	var names []string
	for i := range fields {
		if fields[i].isBlock() {
			names = append(names, fields[i].blockNames()...)
		}
	}
	hint := didYouMean(block.Type, names)
	b.fail(CodeUnknownBlock, block.TypeRange, "Unsupported block", "%s has no block %q.%s", what, block.Type, hint)
}

// nested adds one block to its field: an object is written once, a list or a map grows with each block.
func (b *binder) nested(f *field, block *hclsyntax.Block, parts map[string]*node) {
	kind, isComponent := f.isComponent()
	labels := 0
	if isComponent {
		labels++
	}
	if f.is(kindMap) {
		labels++
	}
	if len(block.Labels) != labels {
		b.fail(CodeLabels, block.DefRange(), "Wrong number of labels", "Write it as %s.", f.blockForm(block.Type))
		parts[f.Name] = nil
		return
	}
	var item *node
	if isComponent {
		item = b.component(kind, block.Labels[labels-1], block.LabelRanges[labels-1], block)
	} else {
		item = b.body(f.Children, block.Body, block.DefRange(), blockTitle(block))
	}
	b.grow(f, block, item, parts)
}

func (b *binder) grow(f *field, block *hclsyntax.Block, item *node, parts map[string]*node) {
	whole, given := parts[f.Name]
	switch {
	case f.is(kindArray):
		if whole == nil {
			whole = &node{at: block.DefRange(), shape: list}
		}
		if item != nil {
			whole.items = append(whole.items, item)
		}
		parts[f.Name] = whole
	case f.is(kindMap):
		if whole == nil {
			whole = &node{at: block.DefRange(), shape: object}
		}
		if first := whole.own(block.Labels[0]); first != nil {
			b.fail(CodeDuplicateName, block.LabelRanges[0], "Duplicate name", "%q is already at %s.", block.Labels[0], position(first.at))
		}
		whole.add(block.Labels[0], item) // nil, where it was refused, is not added
		parts[f.Name] = whole
	case given:
		detail := "Write one %s."
		if whole != nil {
			detail += " The first is at " + position(whole.at) + "."
		}
		b.fail(CodeDuplicateBlock, block.DefRange(), "Duplicate block", detail, f.Name)
	default:
		parts[f.Name] = item
	}
}

// blockTitle names a block as its author would: its type and labels.
func blockTitle(block *hclsyntax.Block) string {
	words := []string{block.Type}
	for _, l := range block.Labels {
		words = append(words, fmt.Sprintf("%q", l))
	}
	return strings.Join(words, " ")
}

// blockForm shows how a field is written as blocks.
func (f *field) blockForm(name string) string {
	form := name
	if f.is(kindMap) {
		form += ` "KEY"`
	}
	if kind, ok := f.isComponent(); ok {
		form += fmt.Sprintf(" %q", strings.ToUpper(string(kind)))
	}
	return form + " { … }"
}

// article gives what is missing in words: the argument or the block.
func (f *field) article() string {
	if f.isBlock() {
		return "the block " + f.blockForm(f.blockNames()[0])
	}
	return fmt.Sprintf("the argument %q", f.Name)
}

// says gives the first sentence of the description, for a message that asks for the argument.
func (f *field) says() string {
	first, _, _ := strings.Cut(f.Description, ". ")
	if first = strings.TrimSuffix(strings.TrimSpace(first), "."); first == "" || len(first) > 200 {
		return ""
	}
	return " " + first + "."
}
