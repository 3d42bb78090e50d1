package binding

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"appliance/internal/event"
	"appliance/internal/generate"
)

const head = `{"specversion":"1.0","id":"1","source":"/s","type":"t","time":"2026-11-02T00:00:00Z"`

func header(r event.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return "(none)"
}

func TestBinary(t *testing.T) {
	for _, c := range []struct {
		name, rest, value, contentType string
	}{
		{"JSON keeps its bytes", `,"datacontenttype":"application/json","data":{"b":1, "a":"<&>\u00e9"}`, `{"b":1, "a":"<&>\u00e9"}`, "application/json"},
		{"data without a type is JSON, and the record says so", `,"data":[1, 2]`, `[1, 2]`, "application/json"},
		{"a suffix +json is JSON", `,"datacontenttype":"application/Geo+JSON; v=1","data":"x"`, `"x"`, "application/Geo+JSON; v=1"},
		{"a string of another type is its characters", `,"datacontenttype":"text/plain","data":"a\nb\u00e9"`, "a\nbé", "text/plain"},
		{"an empty string of another type is an empty value", `,"datacontenttype":"text/plain","data":""`, "", "text/plain"},
		{"base64 is its bytes", `,"datacontenttype":"image/png","data_base64":"iVBORw=="`, "\x89PNG", "image/png"},
		{"base64 without a type has none on the record", `,"data_base64":"/w=="`, "\xff", "(none)"},
		{"null data is no data", `,"datacontenttype":"application/json","data":null`, "(nil)", "application/json"},
		{"no payload and no type", ``, "(nil)", "(none)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Binary([]byte(head + c.rest + "}"))
			if err != nil {
				t.Fatal(err)
			}
			value := string(r.Value)
			if r.Value == nil {
				value = "(nil)"
			}
			if value != c.value || header(r, "content-type") != c.contentType {
				t.Errorf("value %q, content-type %q; want %q, %q", value, header(r, "content-type"), c.value, c.contentType)
			}
			if string(r.Key) != "/s" || header(r, "ce_id") != "1" || header(r, "ce_time") != "2026-11-02T00:00:00Z" {
				t.Errorf("key %q, headers %q", r.Key, r.Headers)
			}
		})
	}
}

func TestBinaryWritesExtensionsAsText(t *testing.T) {
	r, err := Binary([]byte(head + `,"count":-3,"flag":true,"name":"é","gone":null,"partitionkey":"k"}`))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{header(r, "ce_count"), header(r, "ce_flag"), header(r, "ce_name"), header(r, "ce_gone"), header(r, "ce_partitionkey"), string(r.Key)}
	want := []string{"-3", "true", "é", "(none)", "k", "k"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBinaryRefuses(t *testing.T) {
	for _, c := range []struct{ name, rest string }{
		{"a payload that is itself an event, since the record would be that one", `,"datacontenttype":"application/cloudevents+json","data":` + head + "}"},
		{"a batch", `,"datacontenttype":"application/cloudevents-batch+json","data":[]`},
		{"an object of a type that is not JSON", `,"datacontenttype":"text/plain","data":{}`},
		{"bytes that are not the JSON they are said to be", `,"datacontenttype":"application/json","data_base64":"/w=="`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if r, err := Binary([]byte(head + c.rest + "}")); !errors.Is(err, ErrBinary) {
				t.Errorf("got %v, record %v", err, r)
			}
		})
	}
	if _, err := Binary([]byte(`{}`)); err == nil || errors.Is(err, ErrBinary) {
		t.Errorf("what is no event: %v", err)
	}
}

func TestStructuredKeepsTheBytes(t *testing.T) {
	raw := []byte("  " + head + `,"partitionkey":"k","data":1e3}  `)
	r, err := Structured(raw)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(r.Value, raw) || string(r.Key) != "k" || header(r, "content-type") != "application/cloudevents+json" {
		t.Errorf("%q %q %q", r.Key, r.Value, r.Headers)
	}
	if r, err := Structured([]byte(head + `,"p\u0061rtitionkey":"k"}`)); err != nil || string(r.Key) != "k" {
		t.Errorf("an escaped name: key %q, %v", r.Key, err)
	}
	fault := &event.Fault{}
	if _, err := Structured([]byte(`[]`)); !errors.As(err, &fault) || !strings.Contains(fault.Detail, "not the object") {
		t.Errorf("what is no event: %v", err)
	}
}

// What arrives by either mode is the same row, as far as a type of JSON is concerned.
func TestBothModesAreReadAsTheSameEvent(t *testing.T) {
	g, err := generate.New(generate.Options{Seed: 1, Now: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), Total: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		raw := g.Line(rapid.IntRange(0, 1<<30-1).Draw(t, "n")).Raw
		var rows []any
		for _, bind := range []func([]byte) (event.Record, error){Structured, Binary} {
			r, err := bind(raw)
			if err != nil {
				t.Fatal(err)
			}
			e, fault := event.DecodeRecord(&r)
			if fault != nil {
				t.Fatal(fault)
			}
			var row any
			if err := json.Unmarshal(e.Raw, &row); err != nil {
				t.Fatal(err)
			}
			rows = append(rows, row)
		}
		if !reflect.DeepEqual(rows[0], rows[1]) {
			t.Fatalf("structured %v\nbinary     %v", rows[0], rows[1])
		}
	})
}
