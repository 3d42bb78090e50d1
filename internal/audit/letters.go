package audit

import (
	"errors"
	"fmt"

	"appliance/internal/deadletter"
	"appliance/internal/event"
)

// letters takes the messages of a dead-letter topic in any order and enters them into the books of their origins.
type letters struct {
	pipeline string
	find     func(topic string, partition int32) (book *book, topicID [16]byte)

	messages   int64 // read
	unreadable int64 // neither letters nor parts
	open       map[partKey][]deadletter.Part
	joined     map[partKey]bool
}

// partKey names one envelope that was cut into parts: copies of a letter have the same ref and other envelopes.
type partKey struct {
	ref    string
	sha256 [32]byte
}

func newLetters(pipeline string, find func(topic string, partition int32) (*book, [16]byte)) *letters {
	return &letters{pipeline: pipeline, find: find, open: map[partKey][]deadletter.Part{}, joined: map[partKey]bool{}}
}

// take enters one message. A letter counts once all of its parts are there.
func (l *letters) take(r *event.Record) {
	l.messages++
	reading := deadletter.Read(r.Value, r.Headers)
	switch {
	case reading.Letter != nil:
		l.enter(reading.Letter)
	case reading.Part != nil:
		l.part(*reading.Part)
	default:
		l.unreadable++
	}
}

func (l *letters) part(p deadletter.Part) {
	key := partKey{p.Ref, p.SHA256}
	if l.joined[key] {
		return
	}
	l.open[key] = append(l.open[key], p)
	if len(l.open[key]) < p.Parts {
		return
	}
	whole, err := deadletter.Join(l.open[key])
	if _, lacking := errors.AsType[*deadletter.MissingError](err); lacking {
		return // some came twice
	}
	l.joined[key] = true
	delete(l.open, key)
	if err != nil {
		l.unreadable++
		l.hint(p.Ref, err.Error())
		return
	}
	// The envelope is a message like any other, but for its header.
	reading := deadletter.Read(whole, nil)
	if reading.Letter == nil {
		l.unreadable++
		l.hint(p.Ref, "its dead letter is damaged: "+reading.Problem)
		return
	}
	l.enter(reading.Letter)
}

// enter leaves out letters of a topic of the same name that was deleted since, and those of other pipelines, which
// account for nothing here.
func (l *letters) enter(letter *deadletter.Letter) {
	r := &letter.Record
	book, topicID := l.find(r.Topic, r.Partition)
	switch {
	case book == nil || r.TopicID != topicID:
	case letter.Pipeline != l.pipeline:
		book.hint(r.Offset, fmt.Sprintf("only pipeline %q has a dead letter of it", letter.Pipeline))
	default:
		book.letter(r.Offset, SumOf(r))
	}
}

// finish names the letters that never became whole.
func (l *letters) finish() {
	for key, parts := range l.open {
		if _, err := deadletter.Join(parts); err != nil {
			l.hint(key.ref, err.Error())
		}
	}
}

func (l *letters) hint(ref, text string) {
	origin, err := deadletter.ParseRef(ref)
	if err != nil {
		return
	}
	if book, _ := l.find(origin.Topic, origin.Partition); book != nil {
		book.hint(origin.Offset, text)
	}
}
