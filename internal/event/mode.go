package event

import "strings"

// DecodeRecord reads the event of one Kafka record by the CloudEvents Kafka protocol binding, version 1.0.2. Exactly one
// of the results is nil.
//
// The content mode is decided by the content-type header alone (section 3): application/cloudevents+json is structured,
// anything else that begins with application/cloudevents is a format that is not read here (unknown-mode), and every
// other record, also one without that header, is binary. The header's name is matched in any case of letters, since it
// travels through HTTP gateways; two such headers decide nothing and are unknown-mode. Attribute headers are matched
// exactly, by their lower-case ce_ (Kafka's header names are case-sensitive): in binary mode one that begins with CE_ is
// refused, so that an event is never read by half. In structured mode attribute headers are ignored: the value wins.
// Header values are UTF-8 as they stand, never percent-decoded.
func DecodeRecord(r *Record) (*Event, *Fault) {
	contentType, n := r.contentType()
	if n > 1 {
		return nil, faultf(ReasonUnknownMode, "", "the content-type header occurs %d times", n)
	}
	mediaType := essence(contentType)
	e, f := (*Event)(nil), (*Fault)(nil)
	switch {
	case strings.EqualFold(mediaType, "application/cloudevents+json"):
		e, f = decodeStructured(r)
	case hasPrefixFold(mediaType, "application/cloudevents"):
		return nil, faultf(ReasonUnknownMode, "", "content-type %.80q is no format that is read here", contentType)
	default:
		e, f = decodeBinary(r)
	}
	if f != nil {
		return nil, f
	}
	e.Traceparent = r.traceparent()
	return e, nil
}

func decodeStructured(r *Record) (*Event, *Fault) {
	if r.Value == nil {
		return nil, NewFault(ReasonMalformedStructured, "", "the record is structured and has no value")
	}
	return DecodeJSON(r.Value)
}

// contentType returns the last content-type header that has a value, and how many there are.
func (r *Record) contentType() (contentType string, n int) {
	for _, h := range r.Headers {
		if len(h.Key) == len("content-type") && strings.EqualFold(h.Key, "content-type") && h.Value != nil {
			contentType = string(h.Value)
			n++
		}
	}
	return contentType, n
}

// essence returns a media type without its parameters.
func essence(mediaType string) string {
	mediaType, _, _ = strings.Cut(mediaType, ";")
	return strings.Trim(mediaType, " \t")
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// isJSON reports whether a content type declares JSON, as the JSON event format (section 3.1) says: a subtype that is
// json, or ends with +json.
func isJSON(mediaType string) bool {
	_, subtype, _ := strings.Cut(essence(mediaType), "/")
	const suffix = "+json"
	return strings.EqualFold(subtype, "json") ||
		len(subtype) > len(suffix) && strings.EqualFold(subtype[len(subtype)-len(suffix):], suffix)
}
