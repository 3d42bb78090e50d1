package deadletter

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"
	"time"
	"unicode/utf8"

	"appliance/internal/event"
)

// Reading is what a record of the dead-letter topic turned out to be. Exactly one member is set.
type Reading struct {
	Letter  *Letter
	Part    *Part
	Problem string // why it is neither: a foreign record, or a damaged one; valid UTF-8, at most 1,024 bytes
}

// Read reads one record of a dead-letter topic. It is total: the topic is one like any other, and what somebody else wrote
// there is a Problem. A letter is returned only where its value has the length and the hash that it states, so a Letter
// that was read holds the bytes that were received.
func Read(value []byte, headers []event.Header) Reading {
	e, err := readEnvelope(value, headers)
	if err != nil {
		return Reading{Problem: Detail(err.Error())}
	}
	var r Reading
	switch e.Type {
	case Type:
		r.Letter, err = e.letter()
	case PartType:
		r.Part, err = e.part()
	default:
		err = fmt.Errorf("type %q is no dead letter", e.Type)
	}
	if err != nil {
		return Reading{Problem: Detail(err.Error())}
	}
	return r
}

func readEnvelope(value []byte, headers []event.Header) (envelope, error) {
	var e envelope
	if value == nil {
		return e, errors.New("a record without a value")
	}
	if err := checkContentType(headers); err != nil {
		return e, err
	}
	// encoding/json would replace what is no text by U+FFFD, and the letter would say what was never received.
	if !utf8.Valid(value) || loneSurrogate(value) {
		return e, errors.New("not JSON: text that is not Unicode")
	}
	if err := json.Unmarshal(value, &e); err != nil {
		return e, fmt.Errorf("not a CloudEvent in JSON: %w", err)
	}
	if e.SpecVersion != "1.0" {
		return e, fmt.Errorf("specversion %q is not 1.0", e.SpecVersion)
	}
	return e, nil
}

// checkContentType lets a record without the header pass: its content tells.
func checkContentType(headers []event.Header) error {
	for _, h := range headers {
		if !strings.EqualFold(h.Key, "content-type") {
			continue
		}
		media, _, err := mime.ParseMediaType(string(h.Value))
		if err != nil || media != ContentType {
			return fmt.Errorf("content-type %q is not %s", h.Value, ContentType)
		}
	}
	return nil
}

// loneSurrogate tells whether JSON text has an escaped surrogate without its other half. A backslash stands in strings
// only, so the text need not be parsed.
func loneSurrogate(raw []byte) bool {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return false
		}
		raw = raw[i:]
		switch unit := escapedUnit(raw); {
		case unit < 0:
			raw = raw[min(2, len(raw)):]
		case unit < 0xD800 || unit > 0xDFFF:
			raw = raw[6:]
		case unit > 0xDBFF:
			return true
		default:
			if low := escapedUnit(raw[6:]); low < 0xDC00 || low > 0xDFFF {
				return true
			}
			raw = raw[12:]
		}
	}
}

// escapedUnit returns the UTF-16 unit of the \uXXXX that raw begins with, -1 where it begins otherwise.
func escapedUnit(raw []byte) int {
	var unit [2]byte
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return -1
	}
	if _, err := hex.Decode(unit[:], raw[2:6]); err != nil {
		return -1
	}
	return int(unit[0])<<8 | int(unit[1])
}

func (e envelope) letter() (*Letter, error) {
	var d letterData
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	record, err := d.record()
	if err != nil {
		return nil, err
	}
	at, err := readTime(e.Time)
	if err != nil {
		return nil, err
	}
	l := &Letter{Pipeline: d.Pipeline, Reason: d.Reason, Detail: d.Detail, At: at, Record: record, Event: d.Event}
	if err := l.validate(); err != nil {
		return nil, err
	}
	if l.Ref() != e.ID {
		return nil, fmt.Errorf("id %q is not its origin %s", e.ID, l.Ref())
	}
	return l, nil
}

func (d letterData) record() (event.Record, error) {
	r := event.Record{
		Topic:     d.Origin.Topic,
		Partition: d.Origin.Partition,
		Offset:    d.Origin.Offset,
		Timestamp: time.UnixMilli(d.Origin.TimestampMS).UTC(),
	}
	var err error
	if r.TopicID, err = readTopicID(d.Origin.TopicID); err != nil {
		return r, err
	}
	if r.Key, err = join(d.Key, d.KeyBase64); err != nil {
		return r, fmt.Errorf("key: %w", err)
	}
	if r.Value, err = join(d.Value, d.ValueBase64); err != nil {
		return r, fmt.Errorf("value: %w", err)
	}
	if r.Headers, err = readHeaders(d.Headers); err != nil {
		return r, err
	}
	if sum := sha256.Sum256(r.Value); d.Length != len(r.Value) || d.SHA256 != hex.EncodeToString(sum[:]) {
		return r, fmt.Errorf("value: %d bytes of SHA-256 %x, not the %d of %q it states", len(r.Value), sum, d.Length, d.SHA256)
	}
	return r, nil
}

func readHeaders(data []headerData) ([]event.Header, error) {
	var out []event.Header
	for i, h := range data {
		key, err := join(h.Key, h.KeyBase64)
		if err == nil && key == nil {
			err = errors.New("null")
		}
		if err != nil {
			return nil, fmt.Errorf("header %d: key: %w", i, err)
		}
		value, err := join(h.Value, h.ValueBase64)
		if err != nil {
			return nil, fmt.Errorf("header %d: value: %w", i, err)
		}
		out = append(out, event.Header{Key: string(key), Value: value})
	}
	return out, nil
}

func readTopicID(s string) (id [16]byte, err error) {
	if s == "" {
		return id, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(raw) != len(id) {
		return id, fmt.Errorf("topic_id %q is none", s)
	}
	return [16]byte(raw), nil
}

func readTime(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return t, fmt.Errorf("time: %w", err)
	}
	return t.UTC(), nil
}
