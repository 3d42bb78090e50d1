package event

import (
	"encoding/binary"
	"slices"
	"time"
	"unicode/utf8"
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
	return "an unknown kind"
}

// value is an attribute's value as received: the decoded bytes of a string, the literal of a number or a boolean.
type value struct {
	kind kind
	seen bool // a second one is a repeat, also of one that was null
	data []byte
}

type extension struct {
	name []byte
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

// check applies the rules of CloudEvents 1.0 and the bounds above, in the order: version, required, optional,
// extensions, repeats. It sorts the extensions by name. The time is not checked here.
func (a *attributes) check() *Fault {
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
		return badAttribute("id", "source and id have %d bytes together, at most %d are allowed", n, MaxIdentity)
	}
	if f := optional("subject", a.subject); f != nil {
		return f
	}
	if f := optional("datacontenttype", a.datacontenttype); f != nil {
		return f
	}
	if f := optional("dataschema", a.dataschema); f != nil {
		return f
	}
	return a.checkExtensions()
}

func (a *attributes) checkExtensions() *Fault {
	for _, e := range a.extensions {
		if f := e.check(); f != nil {
			return f
		}
	}
	slices.SortFunc(a.extensions, func(x, y extension) int { return slices.Compare(x.name, y.name) })
	for i := 1; i < len(a.extensions); i++ {
		if name := a.extensions[i].name; string(name) == string(a.extensions[i-1].name) {
			return repeated(string(name))
		}
	}
	return nil
}

func (e extension) check() *Fault {
	if f := checkName(string(e.name)); f != nil {
		return f
	}
	name := string(e.name)
	switch e.kind {
	case unset, boolean:
		return nil
	case integer:
		return checkInteger(name, e.data)
	case text:
		// The partitioning extension, its section "partitionkey": the value MUST be a non-empty string.
		if len(e.data) == 0 && name == "partitionkey" {
			return badAttribute(name, "must not be empty")
		}
		return checkText(name, e.data)
	case number:
		return badAttribute(name, "a number must be an integer, without fraction and exponent")
	case composite:
	}
	return badAttribute(name, "must be a string, a boolean or an integer, and is %v", e.kind)
}

// checkName applies the naming rule of the specification; `data` is the name of the payload and of no attribute.
func checkName(name string) *Fault {
	if name == "" {
		return NewFault(ReasonBadAttribute, "", "an attribute has an empty name")
	}
	if len(name) > MaxAttribute {
		return badAttribute(name, "the name has %d bytes, at most %d are allowed", len(name), MaxAttribute)
	}
	for i := range len(name) {
		if c := name[i]; c-'a' > 25 && c-'0' > 9 {
			return badAttribute(name, "the name must consist of lower-case letters a to z and digits")
		}
	}
	if name == "data" {
		return badAttribute(name, "an attribute must not be called data")
	}
	return nil
}

// checkInteger admits -2^31 to 2^31-1, the specification's Integer, in the form -?digits which the scanner has read.
func checkInteger(name string, literal []byte) *Fault {
	digits, limit := literal, int64(1)<<31-1
	if digits[0] == '-' {
		digits, limit = digits[1:], limit+1
	}
	n := int64(0)
	for _, c := range digits {
		if n = n*10 + int64(c-'0'); n > limit {
			return badAttribute(name, "an integer must be within -2147483648 and 2147483647")
		}
	}
	return nil
}

func required(name string, v value) *Fault {
	if v.kind == unset {
		return missing(name)
	}
	return nonEmpty(name, v)
}

func optional(name string, v value) *Fault {
	if v.kind == unset {
		return nil
	}
	return nonEmpty(name, v)
}

func nonEmpty(name string, v value) *Fault {
	if v.kind != text {
		return badAttribute(name, "must be a string, and is %v", v.kind)
	}
	if len(v.data) == 0 {
		return badAttribute(name, "must not be empty")
	}
	return checkText(name, v.data)
}

// checkText applies the specification's String: Unicode without control characters, non-characters and surrogates (which
// UTF-8 cannot write).
func checkText(name string, s []byte) *Fault {
	if len(s) > MaxAttribute {
		return badAttribute(name, "has %d bytes, at most %d are allowed", len(s), MaxAttribute)
	}
	for i := plain(s); i < len(s); {
		r, n := utf8.DecodeRune(s[i:])
		switch {
		case r == utf8.RuneError && n <= 1:
			return badAttribute(name, "the byte 0x%02X at %d is not UTF-8", s[i], i)
		case r < ' ', r >= 0x7F && r <= 0x9F:
			return badAttribute(name, "holds the control character U+%04X", r)
		case r >= 0xFDD0 && r <= 0xFDEF, r&0xFFFE == 0xFFFE:
			return badAttribute(name, "holds U+%04X, which is not a character", r)
		}
		i += n
	}
	return nil
}

// plain returns how many leading bytes, in steps of eight, are printable ASCII.
func plain(s []byte) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := binary.LittleEndian.Uint64(s[i:])
		if del := w ^ ones*0x7F; ((w-ones*' ')&^w|(del-ones)&^del|w)&high != 0 {
			break
		}
	}
	return i
}

func missing(name string) *Fault {
	return NewFault(ReasonMissingAttribute, name, name+": a required attribute is absent")
}

func repeated(name string) *Fault { return badAttribute(name, "occurs more than once") }

// occurredAt reads the time, the one attribute that CloudEvents leaves optional and a row cannot do without: it is
// never invented, since an invented one would file the event in a month in which it did not happen.
func (a *attributes) occurredAt() (time.Time, *Fault) {
	if a.time.kind == unset {
		return time.Time{}, NewFault(ReasonNoTime, "time", "time: the event has none, and rows are kept by it")
	}
	if f := nonEmpty("time", a.time); f != nil {
		return time.Time{}, f
	}
	at, rule := parseTime(a.time.data)
	if rule != "" {
		return time.Time{}, badAttribute("time", "%s", rule)
	}
	return at, nil
}
