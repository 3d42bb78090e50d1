package pipeline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// Page is what there is to say about a component or a block of the language.
type Page struct {
	Kind        string // "input", "processor", "output" or "block"
	Name        string
	Summary     string
	Description string
	Footnotes   string
	Arguments   []ArgumentPage
	Examples    []Example
	Usage       string // HCL
}

// ArgumentPage describes one argument or block.
type ArgumentPage struct {
	Path        string // dotted, within the component or block
	Type        string // in words
	Default     string // as it is written, "" for none
	Required    bool
	Description string
	Options     []string
}

// Example is one of a component's examples, in HCL.
type Example struct{ Title, Summary, HCL string }

// Pages describes the plugins, in their order.
func Pages(plugins []Plugin) ([]Page, error) {
	l, err := newLanguage(plugins)
	if err != nil {
		return nil, err
	}
	var pages []Page
	for _, p := range plugins {
		page, err := l.page(p)
		if err != nil {
			return nil, fmt.Errorf("describe %s %s: %w", p.Kind, p.Name, err)
		}
		pages = append(pages, page)
	}
	return pages, nil
}

func (l language) page(p Plugin) (Page, error) {
	c := l.specs[p.Kind][p.Name]
	page := Page{Kind: string(p.Kind), Name: p.Name, Summary: c.Summary, Description: c.Description, Footnotes: c.Footnotes}
	page.Arguments = describe("", c.Config.Children)
	page.Usage = l.usage(p.Kind, c)
	for _, e := range c.Examples {
		text, err := l.convert(e.Config)
		if err != nil {
			return page, fmt.Errorf("example %q: %w", e.Title, err)
		}
		page.Examples = append(page.Examples, Example{e.Title, e.Summary, text})
	}
	return page, nil
}

// Blocks describes the blocks of the language, in the order in which they are evaluated.
func Blocks() []Page {
	var pages []Page
	for _, t := range topBlocks() {
		usage := t.name + " { … }"
		if t.label != "" {
			usage = fmt.Sprintf("%s %q { … }", t.name, strings.ToUpper(t.label))
		}
		pages = append(pages, Page{Kind: "block", Name: t.name, Summary: t.doc, Usage: usage, Arguments: describe("", t.fields)})
	}
	return pages
}

func describe(prefix string, fields []field) []ArgumentPage {
	var out []ArgumentPage
	for i := range fields {
		f := &fields[i]
		path := prefix + f.Name
		out = append(out, ArgumentPage{
			Path: path, Type: f.inWords(), Default: f.shownDefault(), Required: f.required(), Description: f.Description, Options: f.choices(),
		})
		out = append(out, describe(path+".", f.Children)...)
	}
	return out
}

// inWords says how the field is written.
func (f *field) inWords() string {
	kind, isComponent := f.isComponent()
	words := map[string]string{
		typeString: "string", typeInt: "whole number", typeFloat: "number", typeBool: "true or false",
		typeObject: "block", typeAny: "any value", typeDuration: "duration", typeReference: "reference to `" + f.refers + "`",
	}[f.Type]
	if isComponent {
		words = string(kind)
	}
	switch {
	case isComponent && f.is(kindArray):
		return fmt.Sprintf("blocks `%s`", f.blockForm(f.blockNames()[0]))
	case isComponent, f.isBlock() && (f.is(kindArray) || f.is(kindMap)):
		return fmt.Sprintf("block `%s`", f.blockForm(f.blockNames()[0]))
	case f.is(kindArray):
		return "list of " + words + "s"
	case f.is(kindArrays):
		return "list of lists of " + words + "s"
	case f.is(kindMap):
		return "map of " + words + "s"
	default:
		return words
	}
}

func (f *field) shownDefault() string {
	if !f.hasDefault() {
		return ""
	}
	return string(f.Default)
}

// usage writes a pipeline around the component, with every argument that is not advanced: those without a default as their
// author would, the others with it.
func (l language) usage(kind Kind, c component) string {
	w := &writer{specs: l.specs}
	w.open(`pipeline "example"`)
	switch {
	case kind == Output && c.Name == ledgerOutput: // it accepts nothing else
		w.line(`input "kafka" {
  cluster = kafka.main
  topics = ["events.cloudevents.v1"]
  group = "example"
}`)
		w.blank()
		w.line(`processor "cloudevents_decode" {}`)
		w.blank()
	case kind != Input:
		w.line(`input "stdin" {}`)
		w.blank()
	}
	w.open(fmt.Sprintf("%s %q", kind, c.Name))
	w.usual(c.Config.Children)
	w.close()
	if kind != Output {
		w.blank()
		w.line(`output "drop" {}`)
	}
	w.close()
	return w.formatted()
}

// usual writes the arguments of a usage.
func (w *writer) usual(fields []field) {
	for i := range fields {
		f := &fields[i]
		switch {
		case f.Advanced || f.Deprecated:
		case f.Type == typeObject && f.is(kindScalar):
			w.blank()
			w.open(f.Name)
			w.usual(f.Children)
			w.close()
		case f.Type == typeReference:
			w.line(f.Name + " = " + resourceExample(f.refers))
		case f.hasDefault():
			w.line(f.Name + " = " + string(f.Default))
		default:
			w.line(f.Name + " = " + string(f.placeholder()))
		}
	}
}

// resourceExample is the resource of the shipped configuration.
func resourceExample(kind string) string {
	return kind + "." + cmp.Or(map[string]string{blockPostgres: "events", blockTopic: "events"}[kind], "main")
}

// placeholder is the field's first example, or its name.
func (f *field) placeholder() json.RawMessage {
	if len(f.Examples) > 0 {
		return f.Examples[0]
	}
	return json.RawMessage(asJSON("my-" + strings.ReplaceAll(f.Name, "_", "-")))
}
