package event

import (
	"crypto/sha256"
	"time"
	"unicode/utf8"
)

// event makes the Event out of attributes that were checked. received is the record's value, raw the whole event as
// JSON.
//
// The strings share one allocation of their own: they neither alias raw, which a processor might change, nor keep
// Kafka's much larger fetch buffer alive.
func (a *attributes) event(at time.Time, raw, received, traceparent []byte) *Event {
	var room [512]byte
	all := room[:0]
	parts := [...][]byte{
		a.id.data, a.source.data, a.typ.data, a.subject.data, a.datacontenttype.data, a.time.data, traceparent,
	}
	for _, part := range parts {
		all = append(all, part...)
	}
	shared := string(all)
	var cut [len(parts)]string
	for i, part := range parts {
		cut[i], shared = shared[:len(part)], shared[len(part):]
	}
	return &Event{
		ID: cut[0], Source: cut[1], Type: cut[2], Subject: cut[3], DataContentType: cut[4],
		Time: cut[5], OccurredAt: at,
		Raw: raw, SHA256: sha256.Sum256(received),
		Traceparent: cut[6],
	}
}

// unescape decodes a string that the scanner has accepted.
func unescape(s []byte) []byte {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		i++
		switch s[i] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, _ := hex4(s[i+1:])
			i += 4
			if r >= 0xD800 && r <= 0xDBFF {
				low, _ := hex4(s[i+3:])
				r = (r-0xD800)<<10 + (low - 0xDC00) + 0x10000
				i += 6
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, s[i])
		}
	}
	return out
}
