package event

import (
	"bytes"
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// decodeBinary reads an event whose attributes are headers and whose payload is the value.
func decodeBinary(r *Record, traceparent []byte) (*Event, *Fault) {
	var a attributes
	if f := a.readHeaders(r.Headers); f != nil {
		return nil, f
	}
	if !a.specversion.seen && !a.id.seen && !a.source.seen && !a.typ.seen {
		return nil, NewFault(ReasonMissingAttribute, "specversion", "specversion: a required attribute is absent: "+
			"no header is an attribute (ce_…), nor is the content-type application/cloudevents+json")
	}
	at, f := a.check()
	if f != nil {
		return nil, f
	}
	mediaType := a.datacontenttype
	payload := r.Value
	asJSON := mediaType.kind == text && isJSON(mediaType.data)
	if asJSON && len(payload) == 0 {
		payload = nil // what Python's cloudevents sends for an event without data; no JSON text is empty
	}
	if asJSON && payload != nil {
		if f := checkPayload(payload); f != nil {
			return nil, f
		}
	}
	return a.event(at, a.compose(payload, asJSON), r.Value, traceparent), nil
}

// readHeaders takes the attributes out of the headers. All other headers, the trace context and the x-worxbend ones
// among them, are transport and no part of the event. A header without a value is an attribute that is not set.
func (a *attributes) readHeaders(headers []Header) *Fault {
	for _, h := range headers {
		name, prefixed := strings.CutPrefix(h.Key, "ce_")
		place := &a.datacontenttype
		switch {
		case prefixed && (name == "datacontenttype" || name == "data"):
			return badAttribute(name, "must not be a header of its own (the payload and its content-type are)")
		case prefixed:
			place = a.known([]byte(name))
		case h.isContentType():
		case hasPrefixFold(h.Key, "ce_"):
			return badAttribute(h.Key, "an attribute header begins with a lower-case ce_")
		default:
			continue
		}
		v := value{seen: true, data: h.Value}
		if h.Value != nil {
			v.kind = text
		}
		if place == nil {
			a.extend(name, v)
			continue
		}
		if place.seen && prefixed {
			return repeated(name)
		}
		if prefixed || h.Value != nil {
			*place = v
		}
	}
	return nil
}

func checkPayload(value []byte) *Fault {
	s := scanner{src: value, floor: 1, depth: 1} // inside the event's own braces
	f := s.document()
	switch {
	case f == sound:
		return nil
	case f.storage():
		return faultf(ReasonUnstorableValue, "data", "data: has %v at byte %d, which jsonb cannot hold", f, s.pos)
	}
	return faultf(ReasonMalformedBinary, "data",
		"data: is not the JSON that the content-type declares: %v, at byte %d", f, s.pos)
}

// compose writes the event as one JSON object: the attributes of the specification in its order, the extensions by
// name, the payload last. All values were checked, so that a quote and a backslash are all there is to escape in them.
func (a *attributes) compose(payload []byte, asJSON bool) []byte {
	out := make([]byte, 0, a.size()+len(payload)*4/3+32)
	out = append(out, `{"specversion":"1.0"`...)
	out = appendMember(out, "id", a.id)
	out = appendMember(out, "source", a.source)
	out = appendMember(out, "type", a.typ)
	out = appendMember(out, "subject", a.subject)
	out = appendMember(out, "time", a.time)
	out = appendMember(out, "datacontenttype", a.datacontenttype)
	out = appendMember(out, "dataschema", a.dataschema)
	for _, e := range a.extensions {
		out = appendMember(out, e.name, e.value)
	}
	return append(appendPayload(out, payload, asJSON), '}')
}

// size is an upper bound of the attributes' part, quotes and names included, as long as little has to be escaped.
func (a *attributes) size() int {
	n := 160 + len(a.id.data) + len(a.source.data) + len(a.typ.data) + len(a.subject.data) + len(a.time.data) +
		len(a.datacontenttype.data) + len(a.dataschema.data)
	for _, e := range a.extensions {
		n += len(e.name) + len(e.data) + 6
	}
	return n
}

func appendMember(out []byte, name string, v value) []byte {
	if v.kind == unset {
		return out
	}
	out = append(out, `,"`...)
	out = append(out, name...)
	out = append(out, `":`...)
	return appendString(out, v.data)
}

// appendPayload keeps JSON as it was received, text as a string, and everything else, text with a U+0000 that jsonb has
// no string for included, as data_base64. No value is no member.
func appendPayload(out, payload []byte, asJSON bool) []byte {
	switch {
	case payload == nil:
		return out
	case asJSON:
		return append(append(out, `,"data":`...), payload...)
	case utf8.Valid(payload) && bytes.IndexByte(payload, 0) < 0:
		return appendString(append(out, `,"data":`...), payload)
	}
	out = append(out, `,"data_base64":"`...)
	out = base64.StdEncoding.AppendEncode(out, payload)
	return append(out, '"')
}

// appendString writes valid UTF-8 as a JSON string, with no more escapes than JSON needs.
func appendString(out, s []byte) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	start := 0
	for i, c := range s {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		out = append(out, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			out = append(out, '\\', c)
		case '\n':
			out = append(out, '\\', 'n')
		case '\r':
			out = append(out, '\\', 'r')
		case '\t':
			out = append(out, '\\', 't')
		default:
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(out, s[start:]...), '"')
}
