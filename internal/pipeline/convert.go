package pipeline

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	"gopkg.in/yaml.v3"
)

// convert writes engine YAML as HCL: a plugin's example says input, pipeline.processors and output as the engine does.
// Sections that it leaves out are filled with stdin and drop.
func (l language) convert(text string) (string, error) {
	var doc struct {
		Input    yaml.Node
		Output   yaml.Node
		Pipeline struct{ Processors []yaml.Node }
	}
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return "", fmt.Errorf("read YAML: %w", err)
	}
	w := &writer{specs: l.specs}
	w.open(`pipeline "example"`)
	w.section(Input, doc.Input, `input "stdin" {}`)
	for _, p := range doc.Pipeline.Processors {
		w.blank()
		w.section(Processor, p, "")
	}
	w.blank()
	w.section(Output, doc.Output, `output "drop" {}`)
	w.close()
	return w.formatted(), w.err
}

// writer writes HCL in the form in which the language documents it.
type writer struct {
	specs specs
	out   strings.Builder
	err   error
}

func (w *writer) line(text string) { w.out.WriteString(text + "\n") }
func (w *writer) open(head string) { w.line(head + " {") }
func (w *writer) close()           { w.line("}") }

// blank separates blocks, but not from the brace that opens what they are in.
func (w *writer) blank() {
	if !strings.HasSuffix(w.out.String(), "{\n") {
		w.line("")
	}
}

func (w *writer) formatted() string {
	text := string(hclwrite.Format([]byte(w.out.String())))
	return strings.ReplaceAll(text, " {\n}", " {}")
}

func (w *writer) section(kind Kind, n yaml.Node, otherwise string) {
	if n.Kind == 0 {
		w.line(otherwise)
		return
	}
	w.component(kind, &n)
}

// component writes { NAME: configuration } as a labelled block.
func (w *writer) component(kind Kind, n *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, config := n.Content[i].Value, n.Content[i+1]
		spec, ok := w.specs[kind][name]
		if !ok {
			continue
		}
		own, wrapped := spec.arguments()
		w.open(fmt.Sprintf("%s %q", kind, name))
		if wrapped {
			w.argument(&own[0], config)
		} else {
			w.arguments(own, config)
		}
		w.close()
		return
	}
	w.err = fmt.Errorf("line %d names no %s", n.Line, kind)
}

func (w *writer) arguments(fields []field, n *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		f := find(fields, n.Content[i].Value)
		if f == nil {
			w.err = fmt.Errorf("line %d: there is no argument %q", n.Content[i].Line, n.Content[i].Value)
			continue
		}
		w.argument(f, n.Content[i+1])
	}
}

func (w *writer) argument(f *field, n *yaml.Node) {
	kind, isComponent := f.isComponent()
	block := f.blockNames()[0]
	switch {
	case isComponent && f.is(kindArray):
		for _, item := range n.Content {
			w.component(kind, item)
		}
	case isComponent:
		w.component(kind, n)
	case f.isBlock() && f.is(kindArray):
		for _, item := range n.Content {
			w.open(block)
			w.arguments(f.Children, item)
			w.close()
		}
	case f.isBlock() && !f.is(kindMap):
		w.open(block)
		w.arguments(f.Children, n)
		w.close()
	case f.Type == typeReference:
		w.line(fmt.Sprintf("%s = %s.%s", f.Name, f.refers, n.Value))
	default:
		w.line(f.Name + " = " + w.value(n))
	}
}

// value writes a value; a text of several lines as a heredoc.
func (w *writer) value(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && strings.Contains(strings.TrimSpace(n.Value), "\n") {
		escaped := strings.NewReplacer("${", "$${", "%{", "%%{").Replace(n.Value)
		return "<<-EOT\n" + strings.TrimRight(escaped, "\n") + "\nEOT"
	}
	v, err := w.decode(n)
	if err != nil {
		w.err = err
	}
	return string(hclwrite.TokensForValue(v).Bytes())
}

func (w *writer) decode(n *yaml.Node) (cty.Value, error) {
	switch n.Kind { //nolint:exhaustive // an example has no aliases, and a document's node is not reached
	case yaml.SequenceNode:
		var items []cty.Value
		for _, c := range n.Content {
			item, err := w.decode(c)
			if err != nil {
				return cty.NilVal, err
			}
			items = append(items, item)
		}
		return cty.TupleVal(items), nil
	case yaml.MappingNode:
		attrs := map[string]cty.Value{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			item, err := w.decode(n.Content[i+1])
			if err != nil {
				return cty.NilVal, err
			}
			attrs[n.Content[i].Value] = item
		}
		return cty.ObjectVal(attrs), nil
	default:
		return decodeScalar(n)
	}
}

func decodeScalar(n *yaml.Node) (cty.Value, error) {
	switch n.ShortTag() {
	case "!!bool":
		var b bool
		err := n.Decode(&b)
		return cty.BoolVal(b), err
	case "!!int", "!!float":
		return cty.ParseNumberVal(n.Value)
	default:
		return cty.StringVal(strings.TrimSuffix(n.Value, "\n")), nil
	}
}
