package deadletter

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"appliance/internal/event"
)

// ErrNoRoom is wrapped by Encode where maxBytes leaves no room for a fragment beside a part's own attributes.
var ErrNoRoom = errors.New("no room for a dead letter")

// maxParts bounds how many messages one letter becomes: at a broker's default limit that is some 7 GB. maxPartText bounds
// the text that each part repeats of the event, by what an attribute may have that becomes a row.
const (
	maxParts    = 9999
	maxPartText = 1024
)

// Encode returns the messages that keep l on a topic whose messages may have maxBytes bytes on the wire
// (max.message.bytes): one, or where that one would be larger, several parts from which Join restores it bit by bit. All
// have the same key and so the same partition, and each alone says all but the record. It errs with ErrInvalid, or with
// ErrNoRoom where maxBytes is less than some 12 KiB; no content of the record makes it err.
func (l Letter) Encode(maxBytes int) ([]Message, error) {
	if err := l.validate(); err != nil {
		return nil, fmt.Errorf("encode dead letter: %w", err)
	}
	whole, err := l.envelope()
	if err != nil {
		return nil, fmt.Errorf("encode dead letter %s: %w", l.Ref(), err)
	}
	if m := l.message(whole); m.Size() <= maxBytes {
		return []Message{m}, nil
	}
	parts, err := l.parts(whole, maxBytes)
	if err != nil {
		return nil, fmt.Errorf("encode dead letter %s: %w", l.Ref(), err)
	}
	return parts, nil
}

func (l Letter) message(value []byte) Message {
	return Message{
		Key:     []byte(l.Ref()),
		Value:   value,
		Headers: []event.Header{{Key: "content-type", Value: []byte(ContentType)}},
	}
}

// envelope returns the whole letter as one CloudEvent.
func (l Letter) envelope() ([]byte, error) {
	sum := sha256.Sum256(l.Record.Value)
	d := letterData{
		Reason:   l.Reason,
		Detail:   Detail(l.Detail),
		Pipeline: l.Pipeline,
		Origin:   l.origin(),
		Event:    l.Event.text(math.MaxInt),
		Attempt:  l.Attempt(),
		ReplayOf: l.ReplayOf(),
		Headers:  headersData(l.Record.Headers),
		SHA256:   hex.EncodeToString(sum[:]),
		Length:   len(l.Record.Value),
	}
	d.Key, d.KeyBase64 = split(l.Record.Key)
	d.Value, d.ValueBase64 = split(l.Record.Value)
	return l.wrap(Type, l.Ref(), d)
}

// wrap puts data into a CloudEvent of this letter.
func (l Letter) wrap(typ, id string, data any) ([]byte, error) {
	raw, err := marshal(data)
	if err != nil {
		return nil, err
	}
	return marshal(envelope{
		SpecVersion:     "1.0",
		ID:              id,
		Source:          Source(l.Pipeline),
		Type:            typ,
		Time:            timeText(l.At),
		DataContentType: "application/json",
		Data:            raw,
	})
}

func (l Letter) origin() originData {
	r := l.Record
	id := ""
	if r.TopicID != [16]byte{} {
		id = base64.RawURLEncoding.EncodeToString(r.TopicID[:])
	}
	return originData{
		Topic:       r.Topic,
		TopicID:     id,
		Partition:   r.Partition,
		Offset:      r.Offset,
		Timestamp:   timeText(r.Timestamp),
		TimestampMS: r.Timestamp.UnixMilli(),
	}
}

// text drops the members that are longer than limit, or not UTF-8: their bytes are in the record, and a substituted
// character would name another event.
func (i *Identity) text(limit int) *Identity {
	if i == nil {
		return nil
	}
	out := *i
	for _, member := range []*string{&out.ID, &out.Type, &out.Source} {
		if len(*member) > limit || !utf8.ValidString(*member) {
			*member = ""
		}
	}
	return &out
}

// parts cuts the envelope into messages of at most maxBytes.
func (l Letter) parts(whole []byte, maxBytes int) ([]Message, error) {
	sum := sha256.Sum256(whole)
	d := partData{
		Ref:      l.Ref(),
		Reason:   l.Reason,
		Detail:   Detail(l.Detail),
		Pipeline: l.Pipeline,
		Event:    l.Event.text(maxPartText),
		Attempt:  l.Attempt(),
		ReplayOf: l.ReplayOf(),
		Part:     maxParts,
		Parts:    maxParts,
		SHA256:   hex.EncodeToString(sum[:]),
		Length:   len(whole),
	}
	empty, err := l.part(d) // as large as the attributes can become
	if err != nil {
		return nil, err
	}
	size := (maxBytes - empty.Size()) / 4 * 3 // base64 writes 4 bytes for each 3
	if size <= 0 || (len(whole)+size-1)/size > maxParts {
		return nil, fmt.Errorf("%w: %d bytes into messages of at most %d", ErrNoRoom, len(whole), maxBytes)
	}
	d.Parts = (len(whole) + size - 1) / size
	out := make([]Message, 0, d.Parts)
	for d.Part = 1; d.Part <= d.Parts; d.Part++ {
		fragment := whole[(d.Part-1)*size : min(d.Part*size, len(whole))]
		d.Fragment = base64.StdEncoding.EncodeToString(fragment)
		m, err := l.part(d)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// part returns one part's message. Its id must differ from its siblings': source and id are what names an event.
func (l Letter) part(d partData) (Message, error) {
	id := d.Ref + "#" + strconv.Itoa(d.Part) + "-" + strconv.Itoa(d.Parts)
	value, err := l.wrap(PartType, id, d)
	return l.message(value), err
}
