package pipeline

import (
	"encoding/json"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// shape says which part of a node holds its content.
type shape int

const (
	leaf   shape = iota // value
	object              // members
	list                // items
)

// node is one bound argument or block: its content, checked against its field, and where it was written.
type node struct {
	at      hcl.Range
	shape   shape
	value   cty.Value // of a leaf: null, a string, a number or a bool; never unknown
	secret  bool
	refers  Reference // of a reference: what it names
	members []member
	items   []*node
}

type member struct {
	name string
	node *node
}

// get returns a member of an object by its dotted path, nil where there is none. A member whose own name has dots, as a
// property's, is found by the whole rest of the path.
func (n *node) get(path string) *node {
	if n == nil || path == "" {
		return n
	}
	if found := n.own(path); found != nil {
		return found
	}
	head, rest, nested := strings.Cut(path, ".")
	if !nested {
		return nil
	}
	return n.own(head).get(rest)
}

// own returns the member of exactly that name.
func (n *node) own(name string) *node {
	for _, m := range n.membersOr() {
		if m.name == name {
			return m.node
		}
	}
	return nil
}

// nearestTo returns the deepest node along the path that was written, for errors about arguments that were not.
func (n *node) nearestTo(path string) *node {
	for path != "" {
		if found := n.get(path); found != nil {
			return found
		}
		path, _ = cutLast(path)
	}
	return n
}

// membersOr returns an object's members, none of a node that isn't there.
func (n *node) membersOr() []member {
	if n == nil {
		return nil
	}
	return n.members
}

func cutLast(path string) (head, last string) {
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

func (n *node) add(name string, child *node) {
	if child != nil {
		n.members = append(n.members, member{name, child})
	}
}

// text returns a leaf's value as a string, "" where there is none.
func (n *node) text() string {
	if n == nil || n.shape != leaf || n.value.IsNull() {
		return ""
	}
	if n.value.Type() == cty.String {
		return n.value.AsString()
	}
	raw, err := ctyjson.Marshal(n.value, n.value.Type())
	if err != nil {
		return ""
	}
	return string(raw)
}

// texts returns the items of a list as strings.
func (n *node) texts() []string {
	if n == nil {
		return nil
	}
	out := make([]string, 0, len(n.items))
	for _, item := range n.items {
		out = append(out, item.text())
	}
	return out
}

// fromJSON makes a node of a default, which is JSON; nil where there is none.
func fromJSON(raw json.RawMessage, at hcl.Range) *node {
	if len(raw) == 0 {
		return nil
	}
	t, err := ctyjson.ImpliedType(raw)
	if err != nil {
		return nil
	}
	v, err := ctyjson.Unmarshal(raw, t)
	if err != nil {
		return nil
	}
	return fromValue(v, at)
}

// fromValue makes a node of any known value.
func fromValue(v cty.Value, at hcl.Range) *node {
	n := &node{at: at, secret: isSecret(v)}
	v, marks := v.Unmark()
	switch t := v.Type(); {
	case v.IsNull() || t.IsPrimitiveType():
		n.value = v
	case t.IsObjectType() || t.IsMapType():
		n.shape = object
		for it := v.ElementIterator(); it.Next(); {
			key, item := it.Element()
			n.add(plain(key).AsString(), fromValue(item.WithMarks(marks), at))
		}
	default:
		n.shape = list
		for it := v.ElementIterator(); it.Next(); {
			_, item := it.Element()
			n.items = append(n.items, fromValue(item.WithMarks(marks), at))
		}
	}
	return n
}
