package pipeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// effective gathers everything that was decided, with defaults, as one tree.
func (c *compiler) effective() *node {
	root := &node{shape: object}
	for _, key := range slices.Sorted(maps.Keys(c.nodes)) {
		root.add(key, c.nodes[key])
	}
	return root
}

// Effective returns the configuration as it is in effect, as JSON: one member per block, "TYPE" or "TYPE.NAME", with
// every default of the language filled in, and "(secret)" for each secret.
func (c *Config) Effective() []byte {
	var out bytes.Buffer
	writeJSON(&out, c.effective)
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, out.Bytes(), "", "  "); err != nil {
		panic(fmt.Sprintf("effective configuration is no JSON: %v", err))
	}
	return []byte(c.Secrets.Hide(pretty.String()))
}

func writeJSON(out *bytes.Buffer, n *node) {
	switch {
	case n == nil:
		out.WriteString("null")
	case n.shape == object:
		out.WriteByte('{')
		for i, m := range n.members {
			if i > 0 {
				out.WriteByte(',')
			}
			out.WriteString(asJSON(m.name) + ":")
			writeJSON(out, m.node)
		}
		out.WriteByte('}')
	case n.shape == list:
		out.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				out.WriteByte(',')
			}
			writeJSON(out, item)
		}
		out.WriteByte(']')
	default:
		out.WriteString(leafJSON(n))
	}
}

func leafJSON(n *node) string {
	switch {
	case n.value.IsNull():
		return "null"
	case n.secret && n.text() != "":
		return asJSON(hidden)
	case n.refers.Name != "":
		return asJSON(n.refers.String())
	}
	raw, err := ctyjson.Marshal(n.value, n.value.Type())
	if err != nil {
		return "null"
	}
	return string(raw)
}

func asJSON(s string) string {
	raw, _ := json.Marshal(s) // a string always has a form
	return string(raw)
}
