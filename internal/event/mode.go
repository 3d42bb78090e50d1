package event

import (
	"bytes"
	"strings"
)

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
	switch {
	case !hasPrefixFold(mediaType, "application/cloudevents"):
		return decodeBinary(r, r.traceparent())
	case !bytes.EqualFold(mediaType, []byte("application/cloudevents+json")):
		return nil, faultf(ReasonUnknownMode, "", "content-type %.80q is no format that is read here", contentType)
	case r.Value == nil:
		return nil, NewFault(ReasonMalformedStructured, "", "the record is structured and has no value")
	}
	return decodeJSON(r.Value, r.traceparent())
}

// contentType returns the last content-type header that has a value, and how many there are.
func (r *Record) contentType() (contentType []byte, n int) {
	for i := range r.Headers {
		if h := &r.Headers[i]; h.isContentType() && h.Value != nil {
			contentType = h.Value
			n++
		}
	}
	return contentType, n
}

func (h *Header) isContentType() bool {
	return len(h.Key) == len("content-type") && strings.EqualFold(h.Key, "content-type")
}

// essence returns a media type without its parameters.
func essence(mediaType []byte) []byte {
	mediaType, _, _ = bytes.Cut(mediaType, []byte(";"))
	return bytes.Trim(mediaType, " \t")
}

func hasPrefixFold[T string | []byte](s T, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(string(s[:len(prefix)]), prefix)
}

// isJSON reports whether a content type declares JSON, as the JSON event format (section 3.1) says: a subtype that is
// json, or ends with +json.
func isJSON(mediaType []byte) bool {
	_, subtype, _ := bytes.Cut(essence(mediaType), []byte("/"))
	if bytes.EqualFold(subtype, []byte("json")) {
		return true
	}
	const suffix = "+json"
	return len(subtype) > len(suffix) && bytes.EqualFold(subtype[len(subtype)-len(suffix):], []byte(suffix))
}
