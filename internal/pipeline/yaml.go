package pipeline

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// document is engine configuration: one key a line, so that a line of it is a place in the HCL.
type document struct {
	text  strings.Builder
	lines []hcl.Range // of each line of text
	hide  *Secrets    // for people, who see "(secret)"; nil for the engine, which needs the secrets
}

// render writes a node as YAML, and returns the text and where each of its lines comes from. Secrets are in clear where
// hide is nil.
func render(n *node, hide *Secrets) (string, []hcl.Range) {
	d := &document{hide: hide}
	d.members(n, "")
	return d.text.String(), d.lines
}

func (d *document) line(at hcl.Range, format string, args ...any) {
	fmt.Fprintf(&d.text, format+"\n", args...)
	d.lines = append(d.lines, at)
}

func (d *document) members(n *node, indent string) {
	for _, m := range n.members {
		d.entry(m.node, indent+d.string(m.name)+":", indent+"  ")
	}
}

// entry writes what follows a key or a dash: a scalar on its line, or everything else on lines of their own.
func (d *document) entry(n *node, prefix, indent string) {
	switch {
	case n.shape == leaf:
		d.line(n.at, "%s %s", prefix, d.scalar(n))
	case n.shape == object && len(n.members) == 0:
		d.line(n.at, "%s {}", prefix)
	case n.shape == list && len(n.items) == 0:
		d.line(n.at, "%s []", prefix)
	case n.shape == object:
		d.line(n.at, "%s", prefix)
		d.members(n, indent)
	default:
		d.line(n.at, "%s", prefix)
		for _, item := range n.items {
			d.entry(item, indent+"-", indent+"  ")
		}
	}
}

func (d *document) scalar(n *node) string {
	switch {
	case n.value.IsNull():
		return "null"
	case n.secret && d.hide != nil && n.text() != "":
		return scalarText(hidden)
	case n.value.Type() == cty.String:
		return d.string(n.value.AsString())
	default:
		return n.text()
	}
}

// string writes a key or a value, cleared of secrets that came into it unmarked.
func (d *document) string(s string) string {
	if d.hide != nil {
		s = d.hide.Hide(s)
	}
	return scalarText(s)
}

// scalarText writes a double-quoted scalar on one line. A dollar sign is written by its code, since the engine replaces
// ${…} in the raw text before it parses; so are the characters that YAML refuses in clear.
func scalarText(s string) string {
	quoted, _ := json.Marshal(s) // a string always has a form
	var out strings.Builder
	for _, r := range string(quoted) {
		if r == '$' || r >= 0x7f && r <= 0x9f || r == 0xfeff || r == 0xfffe || r == 0xffff {
			fmt.Fprintf(&out, `\u%04x`, r)
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}
