// Package binding puts an event in JSON onto a Kafka record, in the structured or the binary mode of the CloudEvents Kafka
// protocol binding. It is the way there of what event.DecodeRecord reads.
package binding

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"

	"appliance/internal/event"
)

// ContentType is the content-type header of a record that holds the whole event.
const ContentType = "application/cloudevents+json"

// ErrBinary is wrapped by Binary where binary mode cannot say what the event says.
var ErrBinary = errors.New("the event has no binary form")

// Structured returns the record whose value is the event as it was written, byte for byte. Its key is the event's
// partitionkey where it has one, else its source: the order of a key is kept, and a source's events are what has an order.
// The error is an *event.Fault where raw is no event.
func Structured(raw []byte) (event.Record, error) {
	e, fault := event.DecodeJSON(raw)
	if fault != nil {
		return event.Record{}, fault
	}
	r := event.Record{
		Key:     []byte(e.Source),
		Value:   raw,
		Headers: []event.Header{{Key: "content-type", Value: []byte(ContentType)}},
	}
	// Taking an event apart costs five times what reading it does, and few have a key: an escape may spell it too.
	if !bytes.Contains(raw, []byte("partitionkey")) && !bytes.Contains(raw, []byte(`\u`)) {
		return r, nil
	}
	members, err := split(raw)
	if err != nil {
		return event.Record{}, err
	}
	r.Key = key(e, members)
	return r, nil
}

// Binary returns the record whose headers are the event's attributes and whose value is its payload: JSON as it was
// written, the bytes of a string where the datacontenttype is not JSON, the bytes of data_base64, no value where there is
// no payload. Data without a datacontenttype is JSON, and the record says so. The key is that of Structured. The error is
// an *event.Fault where raw is no event, and wraps ErrBinary where the record would say something else.
func Binary(raw []byte) (event.Record, error) {
	e, fault := event.DecodeJSON(raw)
	if fault != nil {
		return event.Record{}, fault
	}
	members, err := split(raw)
	if err != nil {
		return event.Record{}, err
	}
	r := event.Record{Key: key(e, members)}
	payload, base64Payload := json.RawMessage(nil), json.RawMessage(nil)
	for _, m := range members {
		switch m.name {
		case "data":
			payload = m.value
		case "data_base64":
			base64Payload = m.value
		case "datacontenttype":
			r.Headers = append(r.Headers, event.Header{Key: "content-type", Value: []byte(e.DataContentType)})
		default:
			text, err := m.text()
			if err != nil {
				return event.Record{}, err
			}
			r.Headers = append(r.Headers, event.Header{Key: "ce_" + m.name, Value: []byte(text)})
		}
	}
	switch {
	case base64Payload != nil:
		r.Value, err = fromBase64(base64Payload)
	case payload != nil:
		if e.DataContentType == "" {
			r.Headers = append(r.Headers, event.Header{Key: "content-type", Value: []byte("application/json")})
		}
		r.Value, err = fromData(payload, e.DataContentType)
	}
	if err != nil {
		return event.Record{}, err
	}
	return r, verify(&r, e)
}

// verify reads the record back: a datacontenttype of application/cloudevents+json, for one, would make it a structured
// record of another event.
func verify(r *event.Record, e *event.Event) error {
	back, fault := event.DecodeRecord(r)
	if fault != nil {
		return fmt.Errorf("%w: %w", ErrBinary, fault)
	}
	sameType := e.DataContentType == "" || back.DataContentType == e.DataContentType
	if !sameType || back.ID != e.ID || back.Source != e.Source || back.Type != e.Type || back.Time != e.Time {
		return fmt.Errorf("%w: it would be read as another event", ErrBinary)
	}
	return nil
}

// member is one of the event's own, its value as it was written. A null one is left out: it is not set.
type member struct {
	name  string
	value json.RawMessage
}

// split takes apart an event that DecodeJSON has accepted: one object, each member once.
func split(raw []byte) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("read event: %w", err)
	}
	var members []member
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("read event: %w", err)
		}
		m := member{}
		m.name, _ = name.(string)
		if err := d.Decode(&m.value); err != nil {
			return nil, fmt.Errorf("read event: %w", err)
		}
		if string(m.value) != "null" {
			members = append(members, m)
		}
	}
	return members, nil
}

// text is the attribute's value as a header has it: a string's characters, the literal of a number or a boolean.
func (m member) text() (string, error) {
	if m.value[0] != '"' {
		return string(m.value), nil
	}
	var s string
	if err := json.Unmarshal(m.value, &s); err != nil {
		return "", fmt.Errorf("read attribute %s: %w", m.name, err)
	}
	return s, nil
}

func key(e *event.Event, members []member) []byte {
	for _, m := range members {
		if m.name == "partitionkey" {
			if text, err := m.text(); err == nil {
				return []byte(text)
			}
		}
	}
	return []byte(e.Source)
}

func fromBase64(value json.RawMessage) ([]byte, error) {
	text, err := member{"data_base64", value}.text()
	if err != nil {
		return nil, err
	}
	payload, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("read data_base64: %w", err)
	}
	return append([]byte{}, payload...), nil
}

func fromData(value json.RawMessage, mediaType string) ([]byte, error) {
	if isJSON(mediaType) {
		return value, nil
	}
	if value[0] != '"' {
		return nil, fmt.Errorf("%w: its data is a JSON value under the datacontenttype %q", ErrBinary, mediaType)
	}
	text, err := member{"data", value}.text()
	return []byte(text), err
}

// isJSON reports whether data of this type is JSON (JSON event format, section 3.1): none says so too.
func isJSON(mediaType string) bool {
	if mediaType == "" {
		return true
	}
	essence, _, err := mime.ParseMediaType(mediaType)
	if err != nil {
		essence, _, _ = strings.Cut(strings.ToLower(mediaType), ";")
	}
	_, subtype, _ := strings.Cut(strings.TrimSpace(essence), "/")
	return subtype == "json" || strings.HasSuffix(subtype, "+json")
}
