package event

import (
	"crypto/sha256"
	"unicode/utf8"
)

// event applies every rule and makes the Event. received is the record's value, raw the whole event as JSON.
//
// The strings share one allocation of their own: they neither alias raw, which a processor might change, nor keep
// Kafka's much larger fetch buffer alive.
func (a *attributes) event(raw, received []byte) (*Event, *Fault) {
	if f := a.check(); f != nil {
		return nil, f
	}
	at, f := a.occurredAt()
	if f != nil {
		return nil, f
	}
	var room [512]byte
	all := room[:0]
	for _, v := range [...]*value{&a.id, &a.source, &a.typ, &a.subject, &a.datacontenttype, &a.time} {
		all = append(all, v.data...)
	}
	shared := string(all)
	cut := func(v *value) string {
		s := shared[:len(v.data)]
		shared = shared[len(v.data):]
		return s
	}
	return &Event{
		ID: cut(&a.id), Source: cut(&a.source), Type: cut(&a.typ),
		Subject: cut(&a.subject), DataContentType: cut(&a.datacontenttype),
		Time:       cut(&a.time),
		OccurredAt: at,
		Raw:        raw,
		SHA256:     sha256.Sum256(received),
	}, nil
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
