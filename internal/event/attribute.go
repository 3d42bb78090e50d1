package event

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Bounds of what is indexed. A B-tree entry of PostgreSQL holds 2,704 bytes (54000 beyond that), so the identity, which is
// source and id beside a timestamp, stays below with room for its headers.
const (
	MaxAttribute = 1024 // bytes of an attribute's name or value
	MaxIdentity  = 2000 // bytes of source and id together
)

// kind is the form in which an attribute's value was received.
type kind uint8

const (
	unset   kind = iota // absent, null, or a header without a value
	text                // a string; the only kind that a header has
	integer             // a JSON number in integer form
	boolean
	number    // any other JSON number
	composite // a JSON object or array
)

func (k kind) String() string {
	switch k {
	case unset:
		return "null"
	case text:
		return "a string"
	case integer, number:
		return "a number"
	case boolean:
		return "a boolean"
	case composite:
		return "an object or an array"
	}
	return "of an unknown kind"
}

// value is an attribute's value as received: the decoded bytes of a string, the literal of a number or a boolean.
type value struct {
	kind kind
	seen bool // a second one is a repeat, also of one that was null
	data []byte
}

type extension struct {
	name string
	value
}

// attributes are the context attributes of one event before any rule was applied to their values.
type attributes struct {
	specversion, id, source, typ, subject, time, datacontenttype, dataschema value

	extensions []extension
}

// known returns the place of an attribute that the specification names, nil for an extension.
func (a *attributes) known(name []byte) *value {
	switch string(name) {
	case "specversion":
		return &a.specversion
	case "id":
		return &a.id
	case "source":
		return &a.source
	case "type":
		return &a.typ
	case "subject":
		return &a.subject
	case "time":
		return &a.time
	case "datacontenttype":
		return &a.datacontenttype
	case "dataschema":
		return &a.dataschema
	}
	return nil
}

// extend adds an extension; repeats are found by check. Most events have none, the next most one or two.
func (a *attributes) extend(name string, v value) {
	if a.extensions == nil {
		a.extensions = make([]extension, 0, 2)
	}
	a.extensions = append(a.extensions, extension{name, v})
}

// check applies the rules of CloudEvents 1.0 and the bounds above, in the order: version, required, optional,
// extensions, repeats, time. It sorts the extensions by name and returns the time as an instant.
func (a *attributes) check() (time.Time, *Fault) {
	if f := a.checkContext(); f != nil {
		return time.Time{}, f
	}
	if f := a.checkExtensions(); f != nil {
		return time.Time{}, f
	}
	return a.occurredAt()
}

func (a *attributes) checkContext() *Fault {
	if a.specversion.kind == unset {
		return missing("specversion")
	}
	if a.specversion.kind != text || string(a.specversion.data) != "1.0" {
		return badAttribute("specversion", `must be the string "1.0"`)
	}
	if f := required("id", a.id); f != nil {
		return f
	}
	if f := required("source", a.source); f != nil {
		return f
	}
	if f := required("type", a.typ); f != nil {
		return f
	}
	if n := len(a.source.data) + len(a.id.data); n > MaxIdentity {
		return badAttribute("id", fmt.Sprintf("and source have %d bytes together, at most %d are allowed", n, MaxIdentity))
	}
	if f := optional("subject", a.subject); f != nil {
		return f
	}
	if f := optional("datacontenttype", a.datacontenttype); f != nil {
		return f
	}
	return optional("dataschema", a.dataschema)
}

func (a *attributes) checkExtensions() *Fault {
	for i := range a.extensions {
		e := &a.extensions[i]
		if rule := nameRule(e.name); rule != "" {
			return badAttribute(e.name, rule)
		}
		if rule := e.rule(); rule != "" {
			return badAttribute(e.name, rule)
		}
	}
	if len(a.extensions) < 2 {
		return nil
	}
	// Sorting finds repeats in less than quadratic time, however many names somebody sends.
	slices.SortFunc(a.extensions, func(x, y extension) int { return strings.Compare(x.name, y.name) })
	for i := 1; i < len(a.extensions); i++ {
		if name := a.extensions[i].name; name == a.extensions[i-1].name {
			return repeated(name)
		}
	}
	return nil
}

// occurredAt reads the time, the one attribute that CloudEvents leaves optional and a row cannot do without: it is
// never invented, since an invented one would file the event in a month in which it did not happen.
func (a *attributes) occurredAt() (time.Time, *Fault) {
	if a.time.kind == unset {
		return time.Time{}, NewFault(ReasonNoTime, "time", "time: the event has none, and rows are kept by it")
	}
	if f := optional("time", a.time); f != nil {
		return time.Time{}, f
	}
	at, rule := parseTime(a.time.data)
	if rule != "" {
		return time.Time{}, badAttribute("time", rule)
	}
	return at, nil
}

func required(name string, v value) *Fault {
	if v.kind == unset {
		return missing(name)
	}
	return optional(name, v)
}

func optional(name string, v value) *Fault {
	if v.kind == unset {
		return nil
	}
	if rule := v.nonEmptyRule(); rule != "" {
		return badAttribute(name, rule)
	}
	return nil
}
