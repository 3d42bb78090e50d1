package event_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"appliance/internal/event"
)

// stored fails the test unless PostgreSQL holds the event's raw and reads the same attributes out of it.
func (j jsonb) stored(t *testing.T, e *event.Event) {
	t.Helper()
	var got [6]string
	err := j.conn.QueryRow(context.Background(), `SELECT r->>'id', r->>'source', r->>'type', coalesce(r->>'subject', ''),
		coalesce(r->>'datacontenttype', ''), r->>'time' FROM (SELECT $1::jsonb AS r) AS event`, string(e.Raw)).
		Scan(&got[0], &got[1], &got[2], &got[3], &got[4], &got[5])
	if err != nil {
		t.Errorf("%q: %v", e.Raw, err)
		return
	}
	if want := [6]string{e.ID, e.Source, e.Type, e.Subject, e.DataContentType, e.Time}; got != want {
		t.Errorf("%q\nPostgreSQL reads %q\nwe read         %q", e.Raw, got, want)
	}
}

func TestWhatIsDecodedIsStored(t *testing.T) {
	server := newJSONB(t)
	for name, text := range corpus(t, "structured") {
		if e, _ := event.DecodeJSON(text); e != nil {
			t.Run(name, func(t *testing.T) { server.stored(t, e) })
		}
	}
	for name, text := range corpus(t, "binary") {
		r := parseRecord(text)
		if e, _ := event.DecodeRecord(&r); e != nil {
			t.Run(name, func(t *testing.T) { server.stored(t, e) })
		}
	}
}

func TestWhatIsDecodedOfGeneratedRecordsIsStored(t *testing.T) {
	server := newJSONB(t)
	source := rand.New(rand.NewPCG(5, 6)) // always the same records: a failure can be repeated
	accepted := 0
	const n = 1500
	for range n {
		r := generated(source)
		e, f := event.DecodeRecord(&r)
		if (e == nil) == (f == nil) {
			t.Fatalf("both or neither for %q", r.Headers)
		}
		if e != nil {
			accepted++
			server.stored(t, e)
		}
	}
	if accepted < n/10 || accepted > n-n/10 {
		t.Errorf("%d of %d are events: too one-sided to prove anything", accepted, n)
	}
}

// generated is a binary record whose attributes and payload are, now and then, hostile.
func generated(source *rand.Rand) event.Record {
	pick := func(from ...string) string { return from[source.IntN(len(from))] }
	word := func() string {
		var text strings.Builder
		for range 1 + source.IntN(3) {
			text.WriteString(pick("a", "7", "/", "é", "😀", `"`, `\`, "<", " ", "%41", "\u2028", "12345678", `\u0000`))
		}
		if source.IntN(40) == 0 {
			text.WriteString(pick("\x00", "\xff", "\u0085", "\x7f", "\ufffe", "\n", "\xed\xa0\x80"))
		}
		return text.String()
	}
	r := record(pick("-", "", `{"a":[1,-0.5e+300,"\u00e9\\"]}`, `"x"`, "plain", "a\x00b", "\xff\xfe", "é\n\t\"\\", "1e131072", `"\ud83d"`, word()),
		"ce_specversion", "1.0", "ce_id", word(), "ce_source", word(), "ce_type", word(), "ce_time", "2026-11-30T09:10:11.5Z")
	for _, name := range []string{"ce_subject", "ce_ext", "ce_dataschema"} {
		if source.IntN(2) == 0 {
			r.Headers = append(r.Headers, event.Header{Key: name, Value: []byte(word())})
		}
	}
	if contentType := pick("", "application/json", "text/plain", "x/y+json", "application/octet-stream"); contentType != "" {
		r.Headers = append(r.Headers, event.Header{Key: "content-type", Value: []byte(contentType)})
	}
	return r
}
