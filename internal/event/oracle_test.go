package event_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	sdk "github.com/cloudevents/sdk-go/v2/event"

	"appliance/internal/event"
)

// reading is what one of the two decoders makes of a structured event: the parts in which they must agree.
type reading struct {
	ID, Source, Type, Subject, ContentType, Schema string
	At                                             time.Time
	Extensions                                     map[string]any
	Data                                           string // as bytes where it is text or base64, else as compact JSON
}

// bySDK reads with sdk-go. Its panics are refusals here; two of them are listed below.
func bySDK(text []byte) (r reading, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	var e sdk.Event
	if err := json.Unmarshal(text, &e); err != nil {
		return reading{}, err
	}
	if err := e.Validate(); err != nil {
		return reading{}, err
	}
	r = reading{
		ID: e.ID(), Source: e.Source(), Type: e.Type(), Subject: e.Subject(), ContentType: e.DataContentType(),
		Schema: e.DataSchema(), At: e.Time(), Extensions: map[string]any{}, Data: string(e.Data()),
	}
	maps.Copy(r.Extensions, e.Extensions())
	if !e.DataBase64 && isJSON(r.ContentType) {
		r.Data = compact(e.Data())
	}
	return r, nil
}

// byUs reads with DecodeJSON, and the rest out of the raw text that it lets through.
func byUs(text []byte) (reading, error) {
	e, f := event.DecodeJSON(text)
	if f != nil {
		return reading{}, f
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(e.Raw, &members); err != nil {
		return reading{}, fmt.Errorf("accepted what encoding/json refuses: %w", err)
	}
	r := reading{
		ID: e.ID, Source: canonical(e.Source), Type: e.Type, Subject: e.Subject, ContentType: e.DataContentType,
		At: e.OccurredAt, Extensions: map[string]any{}, Data: data(members["data"], members["data_base64"], e.DataContentType),
	}
	for name, raw := range members {
		switch name {
		case "specversion", "id", "source", "type", "subject", "time", "datacontenttype", "data", "data_base64":
		case "dataschema":
			r.Schema = canonical(decode[string](raw))
		default:
			if v := decode[any](raw); v != nil {
				r.Extensions[name] = v
			}
			if n, ok := r.Extensions[name].(float64); ok {
				r.Extensions[name] = int32(n)
			}
		}
	}
	return r, nil
}

func data(plain, coded json.RawMessage, contentType string) string {
	switch {
	case coded != nil && string(coded) != "null":
		b, err := base64.StdEncoding.DecodeString(decode[string](coded))
		if err != nil {
			return "not base64: " + err.Error()
		}
		return string(b)
	case isJSON(contentType):
		return compact(plain)
	}
	return decode[string](plain)
}

func decode[T any](raw json.RawMessage) T {
	var v T
	if len(raw) == 0 {
		return v
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		var zero T
		return zero
	}
	return v
}

func compact(raw []byte) string {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return string(raw)
	}
	return b.String()
}

// canonical is the form that sdk-go gives a URI.
func canonical(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return uri
	}
	return u.String()
}

// isJSON is sdk-go's opinion: no content type is JSON, and so are these two and a suffix.
func isJSON(contentType string) bool {
	mediaType, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	mediaType = strings.TrimSpace(mediaType)
	return mediaType == "" || mediaType == "application/json" || mediaType == "text/json" || strings.HasSuffix(mediaType, "+json")
}

func (r reading) differs(o reading) string {
	a, b := r, o
	a.At, b.At = a.At.UTC().Truncate(time.Microsecond), b.At.UTC().Truncate(time.Microsecond)
	if x, y := fmt.Sprintf("%#v", a), fmt.Sprintf("%#v", b); x != y {
		return fmt.Sprintf("we read %s\nsdk-go  %s", x, y)
	}
	return ""
}

// What both accept they read alike. Where sdk-go is known to be wrong or more generous, it is listed below.
func FuzzStructuredAgreesWithSDK(f *testing.F) {
	for _, text := range corpus(f, "structured") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ours, refusal := byUs(text)
		if refusal != nil {
			return
		}
		theirs, err := bySDK(text)
		if err != nil || generous(ours) {
			return
		}
		if difference := ours.differs(theirs); difference != "" {
			t.Errorf("%q:\n%s", text, difference)
		}
	})
}

// generous names the one form that both accept and sdk-go loses: a dataschema that is no URI becomes none.
func generous(r reading) bool {
	_, err := url.Parse(r.Schema)
	return err != nil
}

// The corpus holds enough that both accept for the comparison to mean something.
func TestTheCorpusHasEventsThatBothAccept(t *testing.T) {
	both := 0
	for name, text := range corpus(t, "structured") {
		ours, refusal := byUs(text)
		theirs, err := bySDK(text)
		if refusal != nil || err != nil {
			continue
		}
		both++
		if difference := ours.differs(theirs); difference != "" {
			t.Errorf("%s: %s", name, difference)
		}
	}
	if both < 15 {
		t.Errorf("only %d", both)
	}
}

// Each difference to sdk-go v2.16.2 that is known. One that goes away with another version of it is to be taken out.
func TestKnownDifferencesToSDK(t *testing.T) {
	const refused = "refused"
	for name, c := range map[string]struct{ text, ours, theirs string }{
		"an empty member name ends the event for it, data is lost": {
			`{` + core + `,"":0,"data":{"amount":1}}`, refused, `Data:""`,
		},
		"it cuts a fraction off":         {`{` + core + `,"seq":1.5}`, refused, `"seq":1}`},
		"it takes 1e2 for an integer":    {`{` + core + `,"seq":1e2}`, refused, `"seq":100}`},
		"it takes the last of two ids":   {`{` + core + `,"id":"2"}`, refused, `ID:"2"`},
		"it takes the last of two data":  {`{` + core + `,"datacontenttype":"text/plain","data":"aGk=","data_base64":"aGk="}`, refused, `Data:"hi"`},
		"it lets bytes be no UTF-8":      {"{" + core + ",\"x\":\"\xff\"}", refused, `"x":`},
		"it lets control characters in":  {`{` + core + `,"x":"a\u0000"}`, refused, `"x":"a\x00"`},
		"it lets half a surrogate in":    {`{` + core + `,"x":"\ud83d"}`, refused, `"x":"�"`},
		"it folds upper-case names":      {`{` + core + `,"myExt":"a"}`, refused, `"myext":"a"`},
		"it takes an empty subject":      {`{` + core + `,"subject":""}`, refused, `Subject:""`},
		"it takes an event without time": {`{"specversion":"1.0","id":"a","source":"/s","type":"t"}`, refused, `ID:"a"`},
		"it drops a dataschema that is no URI": {
			`{` + core + `,"dataschema":"%zz"}`, `Schema:"%zz"`, `Schema:""`,
		},
		"it refuses lower-case t and z": {
			`{"specversion":"1.0","id":"a","source":"/s","type":"t","time":"2026-11-15t01:02:03z"}`, `ID:"a"`, "not in RFC3339 format",
		},
		"it panics on null data_base64 beside data": {
			`{` + core + `,"data_base64":null,"data":1}`, `Data:"1"`, "panic: ",
		},
		"it refuses escaped slashes in base64": {
			`{` + core + `,"data_base64":"\/\/\/\/"}`, `Data:"\xff\xff\xff"`, "illegal base64",
		},
		"it refuses an object as data of a text": {
			`{` + core + `,"datacontenttype":"text/plain","data":{}}`, `ID:"A"`, "expected a string",
		},
		"it panics on a number as data_base64": {
			`{"data_base64":1,"datacontenttype":"x/y",` + core + `}`, refused, "panic: ",
		},
		"it panics on an empty encoding of version 0.3": {
			`{"datacontentencoding":"","specversion":"0.3","id":"a"}`, refused, "panic: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ours, refusal := byUs([]byte(c.text))
			if got := fmt.Sprintf("%#v", ours); (refusal != nil) != (c.ours == refused) || refusal == nil && !strings.Contains(got, c.ours) {
				t.Errorf("we: %v, %s, want %s", refusal, got, c.ours)
			}
			theirs, err := bySDK([]byte(c.text))
			if got := fmt.Sprintf("%#v %v", theirs, err); !strings.Contains(got, c.theirs) {
				t.Errorf("sdk-go: %s, want %s", got, c.theirs)
			}
		})
	}
}
