package event_test

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"appliance/internal/event"
)

// total checks what holds of every result, whatever was decoded.
func total(t *testing.T, received []byte, e *event.Event, f *event.Fault) {
	t.Helper()
	if (e == nil) == (f == nil) {
		t.Fatalf("gave both or neither: %v, %v", e, f)
	}
	if f != nil {
		if !slices.Contains(event.Reasons(), f.Reason) || f.Detail == "" || len(f.Detail) > event.MaxDetail ||
			!utf8.ValidString(f.Detail+f.Attribute) || strings.Contains(f.Detail+f.Attribute, "\x00") {
			t.Errorf("fault %+v", f)
		}
		return
	}
	if e.ID == "" || e.Source == "" || e.Type == "" || e.Time == "" || e.SHA256 != sha256.Sum256(received) {
		t.Errorf("event %+v", e)
	}
	if at := e.OccurredAt; at.Nanosecond()%1000 != 0 || at.Location().String() != "UTC" {
		t.Errorf("occurred at %v", at)
	}
	again, refusal := event.DecodeJSON(e.Raw)
	if refusal != nil {
		t.Fatalf("raw is no event: %v: %s", refusal, e.Raw)
	}
	again.SHA256, again.Traceparent = e.SHA256, e.Traceparent
	if again.ID != e.ID || again.Source != e.Source || again.Type != e.Type || again.Subject != e.Subject ||
		again.Time != e.Time || again.DataContentType != e.DataContentType || !again.OccurredAt.Equal(e.OccurredAt) {
		t.Errorf("raw says %+v, the event %+v", again, e)
	}
}

func FuzzDecodeJSON(f *testing.F) {
	for _, folder := range []string{"structured", "jsonb"} {
		for _, text := range corpus(f, folder) {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		kept := bytes.Clone(text)
		e, fault := event.DecodeJSON(text)
		total(t, text, e, fault)
		if !bytes.Equal(text, kept) {
			t.Error("the text was changed")
		}
	})
}

// FuzzDecodeRecord takes records in the corpus' form: header lines, an empty line, the value.
func FuzzDecodeRecord(f *testing.F) {
	for _, text := range corpus(f, "binary") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := parseRecord(text)
		e, fault := event.DecodeRecord(&r)
		total(t, r.Value, e, fault)
		r.Value = nil
		e, fault = event.DecodeRecord(&r)
		total(t, nil, e, fault)
	})
}
