package deadletter

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"

	"appliance/internal/event"
)

// envelope is the CloudEvent around a letter or a part, in structured JSON.
type envelope struct {
	SpecVersion     string          `json:"specversion"`
	ID              string          `json:"id"`
	Source          string          `json:"source"`
	Type            string          `json:"type"`
	Time            string          `json:"time,omitempty"`
	DataContentType string          `json:"datacontenttype"`
	Data            json.RawMessage `json:"data"`
}

// letterData is the data of a letter. Of each pair x and x_base64 exactly one member is present: x is a JSON string where
// the bytes are UTF-8 and null where there were none, x_base64 holds any other bytes.
type letterData struct {
	Reason      string       `json:"reason"`
	Detail      string       `json:"detail"`
	Pipeline    string       `json:"pipeline"`
	Origin      originData   `json:"origin"`
	Event       *Identity    `json:"event,omitempty"`
	Attempt     int          `json:"attempt"`
	ReplayOf    string       `json:"replay_of,omitempty"`
	Key         text         `json:"key,omitzero"`
	KeyBase64   *string      `json:"key_base64,omitempty"`
	Headers     []headerData `json:"headers"`
	SHA256      string       `json:"sha256"` // of the value, lower-case hex; of no bytes where the value is null
	Length      int          `json:"length"` // of the value, bytes
	Value       text         `json:"value,omitzero"`
	ValueBase64 *string      `json:"value_base64,omitempty"`
}

// originData is where the record was read. timestamp_ms is what counts; timestamp is for people, and absent where RFC 3339
// has no year for it, since a producer may write any 64 bits.
type originData struct {
	Topic       string `json:"topic"`
	TopicID     string `json:"topic_id,omitempty"` // as Kafka prints it: base64url without padding
	Partition   int32  `json:"partition"`
	Offset      int64  `json:"offset"`
	Timestamp   string `json:"timestamp,omitempty"`
	TimestampMS int64  `json:"timestamp_ms"`
}

type headerData struct {
	Key         text    `json:"key,omitzero"`
	KeyBase64   *string `json:"key_base64,omitempty"`
	Value       text    `json:"value,omitzero"`
	ValueBase64 *string `json:"value_base64,omitempty"`
}

// partData is the data of a part. It says what a letter says except for the record, so that each part can be listed.
type partData struct {
	Ref      string    `json:"ref"`
	Reason   string    `json:"reason"`
	Detail   string    `json:"detail"`
	Pipeline string    `json:"pipeline"`
	Event    *Identity `json:"event,omitempty"` // without members beyond maxPartText
	Attempt  int       `json:"attempt"`
	ReplayOf string    `json:"replay_of,omitempty"`
	Part     int       `json:"part"`   // 1 to parts
	Parts    int       `json:"parts"`  // how many make the envelope
	SHA256   string    `json:"sha256"` // of the whole envelope, lower-case hex
	Length   int       `json:"length"` // of the whole envelope, bytes
	Fragment string    `json:"fragment_base64"`
}

// text is a member that is absent, null or a string: three different things, which no plain type of encoding/json tells
// apart when reading.
type text struct {
	present, null bool
	value         string
}

// IsZero makes an absent member absent.
func (t text) IsZero() bool { return !t.present }

// MarshalJSON writes null or the string.
func (t text) MarshalJSON() ([]byte, error) {
	if t.null {
		return []byte("null"), nil
	}
	return marshal(t.value)
}

// UnmarshalJSON is also called for null, which is the point.
func (t *text) UnmarshalJSON(raw []byte) error {
	t.present, t.null = true, string(raw) == "null"
	return json.Unmarshal(raw, &t.value)
}

// split chooses the member that holds b without loss.
func split(b []byte) (text, *string) {
	if b == nil {
		return text{present: true, null: true}, nil
	}
	if utf8.Valid(b) {
		return text{present: true, value: string(b)}, nil
	}
	encoded := base64.StdEncoding.EncodeToString(b)
	return text{}, &encoded
}

var errPair = errors.New("needs exactly one of the text and the base64 member")

// join undoes split.
func join(t text, encoded *string) ([]byte, error) {
	switch {
	case t.present == (encoded != nil):
		return nil, errPair
	case encoded != nil:
		return decodeBase64(*encoded)
	case t.null:
		return nil, nil
	default:
		return []byte(t.value), nil
	}
}

// decodeBase64 is strict, so that two texts never mean the same bytes; its result is never nil.
func decodeBase64(s string) ([]byte, error) {
	out, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil {
		return nil, err
	}
	return append([]byte{}, out...), nil
}

// marshal is json.Marshal that leaves <, > and & as they are: a payload is shown as it was.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

func headersData(headers []event.Header) []headerData {
	out := make([]headerData, len(headers))
	for i, h := range headers {
		out[i].Key, out[i].KeyBase64 = split([]byte(h.Key))
		out[i].Value, out[i].ValueBase64 = split(h.Value)
	}
	return out
}

func timeText(t time.Time) string {
	if year := t.UTC().Year(); t.IsZero() || year < 1 || year > 9999 {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
