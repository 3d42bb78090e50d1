package event

import (
	"bytes"
	"fmt"
)

// DecodeJSON reads one event in the CloudEvents JSON event format, version 1.0. Exactly one of the results is nil. Raw is
// the text itself, not a copy: whoever changes one changes the other.
//
// A null member is an absent one, `data` and `data_base64` included. Unlike most readers of JSON it refuses what would
// lose something or mean two things: text after the value, members that occur twice in the event itself (inside data
// they are PostgreSQL's to decide: the last wins), both payload members, numbers that are no CloudEvents integer.
// URIs are not parsed: a source with a space in it is common, and is a source.
func DecodeJSON(raw []byte) (*Event, *Fault) {
	return decodeJSON(raw, nil)
}

func decodeJSON(raw, traceparent []byte) (*Event, *Fault) {
	var a attributes
	if f := a.readJSON(raw); f != nil {
		return nil, f
	}
	at, f := a.check()
	if f != nil {
		return nil, f
	}
	return a.event(at, raw, raw, traceparent), nil
}

// members are what an event in JSON has beside its attributes.
type members struct{ data, base64 value }

// readJSON reads the event's own members, and everything below them for its grammar and storability.
func (a *attributes) readJSON(raw []byte) *Fault {
	s := scanner{src: raw}
	s.space()
	if s.pos < len(raw) && raw[s.pos] != '{' {
		return s.notAnObject()
	}
	if s.pos == len(raw) {
		return s.fault(noValue, "")
	}
	var m members
	more, f := s.open(true)
	for more && f == sound {
		name := s.src[s.label.start:s.label.end]
		if s.label.escaped {
			name = unescape(name)
		}
		var v value
		if v, f = s.member(); f != sound {
			return s.fault(f, string(name))
		}
		if fault := a.take(name, v, &m); fault != nil {
			return fault
		}
		more, f = s.follow()
	}
	if f == sound {
		f = s.end()
	}
	if f != sound {
		return s.fault(f, "")
	}
	return m.check()
}

// member reads the value of one of the event's own members.
func (s *scanner) member() (value, flaw) {
	s.space()
	start := s.pos
	if f := s.value(); f != sound {
		return value{}, f
	}
	v := value{seen: true, data: s.src[start:s.pos]}
	switch v.data[0] {
	case '"':
		v.kind, v.data = text, v.data[1:len(v.data)-1]
		if s.escaped {
			v.data = unescape(v.data)
		}
	case '{', '[':
		v.kind = composite
	case 't', 'f':
		v.kind = boolean
	case 'n':
		v = value{seen: true}
	default:
		v.kind = integer
		if bytes.ContainsAny(v.data, ".eE") {
			v.kind = number
		}
	}
	return v, sound
}

// take puts one member where it belongs.
func (a *attributes) take(name []byte, v value, m *members) *Fault {
	place := a.known(name)
	if place == nil {
		switch string(name) {
		case "data":
			place = &m.data
		case "data_base64":
			place = &m.base64
		default:
			a.extend(string(name), v)
			return nil
		}
	}
	if place.seen {
		return repeatedMember(string(name))
	}
	*place = v
	return nil
}

func repeatedMember(name string) *Fault {
	if name == "data" || name == "data_base64" {
		return NewFault(ReasonMalformedStructured, name, name+": the member occurs more than once")
	}
	return repeated(name)
}

// check applies section 3.1 of the JSON event format.
func (m *members) check() *Fault {
	if m.base64.kind == unset {
		return nil
	}
	if m.data.kind != unset {
		return NewFault(ReasonMalformedStructured, "data_base64", "data_base64: an event must not have data as well")
	}
	if m.base64.kind != text {
		return faultf(ReasonMalformedStructured, "data_base64", "data_base64: must be a string, and is %v", m.base64.kind)
	}
	if !isBase64(m.base64.data) {
		return NewFault(ReasonMalformedStructured, "data_base64", "data_base64: is not base64 (RFC 4648, section 4, padded)")
	}
	return nil
}

// isBase64 is stricter than encoding/base64, which skips line ends; like it, spare bits may be set.
func isBase64(s []byte) bool {
	if len(s)%4 != 0 {
		return false
	}
	for range 2 {
		s = bytes.TrimSuffix(s, []byte("="))
	}
	for _, c := range s {
		if c-'0' > 9 && c|0x20-'a' > 25 && c != '+' && c != '/' {
			return false
		}
	}
	return true
}

// notAnObject tells an array or a scalar from a text that is no JSON at all.
func (s *scanner) notAnObject() *Fault {
	if f := s.document(); f != sound {
		return s.fault(f, "")
	}
	return NewFault(ReasonMalformedStructured, "", "the value is JSON, and not the object that an event is")
}

// fault says what is wrong at pos, inside the member name where there is one. A flaw of an attribute's text is against
// the specification's String type; the same inside data is against jsonb alone.
func (s *scanner) fault(f flaw, name string) *Fault {
	if !f.storage() {
		return faultf(ReasonMalformedStructured, "", "the value is not JSON: %v, at byte %d", f, s.pos)
	}
	if name == "" {
		return faultf(ReasonUnstorableValue, "", "a member name of the event has %v at byte %d, which jsonb cannot hold", f, s.pos)
	}
	if name == "data" || name == "data_base64" {
		return faultf(ReasonUnstorableValue, name, "%s: has %v at byte %d, which jsonb cannot hold", name, f, s.pos)
	}
	return badAttribute(name, fmt.Sprintf("has %v at byte %d", f, s.pos))
}
