package event_test

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"testing"

	"appliance/internal/event"
)

const core = `"specversion":"1.0","id":"A","source":"/s","type":"t","time":"2026-11-30T09:10:11Z"`

// record makes a record of header pairs; the value "-" is a null one.
func record(value string, headers ...string) event.Record {
	r := event.Record{Value: []byte(value)}
	if value == "-" {
		r.Value = nil
	}
	for i := 0; i < len(headers); i += 2 {
		r.Headers = append(r.Headers, event.Header{Key: headers[i], Value: []byte(headers[i+1])})
	}
	return r
}

// full is a record with every required attribute in front of the further headers.
func full(value string, headers ...string) event.Record {
	return record(value, append([]string{
		"ce_specversion", "1.0", "ce_id", "A", "ce_source", "/s", "ce_type", "t", "ce_time", "2026-11-30T09:10:11Z",
	}, headers...)...)
}

func TestContentTypeAloneDecidesTheMode(t *testing.T) {
	const structured = "application/cloudevents+json"
	object := "{" + core + "}"
	noValue := full("x")
	noValue.Headers = append(noValue.Headers, event.Header{Key: "content-type"})
	for name, c := range map[string]struct {
		record    event.Record
		reason    string // "" for an event with the id A
		attribute string
	}{
		"structured":                                       {record(object, "content-type", structured), "", ""},
		"structured in capitals with a charset":            {record(object, "content-type", `Application/CloudEvents+JSON; Charset="utf-8"`), "", ""},
		"structured with a space before its parameters":    {record(object, "content-type", structured+" ;charset=utf-8"), "", ""},
		"structured under a capitalised header (CEK-04)":   {record(object, "Content-Type", structured), "", ""},
		"structured, and headers that disagree (CEK-13)":   {full(object, "content-type", structured, "ce_id", "B"), "", ""},
		"structured, null (CEK-08c)":                       {record("-", "content-type", structured), event.ReasonMalformedStructured, ""},
		"structured, empty":                                {record("", "content-type", structured), event.ReasonMalformedStructured, ""},
		"a batch":                                          {record("["+object+"]", "content-type", "application/cloudevents-batch+json"), event.ReasonUnknownMode, ""},
		"a batch under the name of one event":              {record("["+object+"]", "content-type", structured), event.ReasonMalformedStructured, ""},
		"avro":                                             {full("Obj", "content-type", "application/cloudevents+avro"), event.ReasonUnknownMode, ""},
		"no format at all":                                 {full(object, "content-type", "application/cloudevents"), event.ReasonUnknownMode, ""},
		"two content types, one structured":                {full(object, "content-type", structured, "Content-Type", "text/plain"), event.ReasonUnknownMode, ""},
		"binary":                                           {full("x", "content-type", "text/plain"), "", ""},
		"binary without content-type":                      {full("x"), "", ""},
		"binary with a content-type that has no value":     {noValue, "", ""},
		"no header at all, JSON in the value (CEK-02)":     {record(object), event.ReasonMissingAttribute, "specversion"},
		"no header and no value (CEK-08a)":                 {record("-"), event.ReasonMissingAttribute, "specversion"},
		"foreign headers alone":                            {record("x", "content-type", "text/plain", "id", "A"), event.ReasonMissingAttribute, "specversion"},
		"attribute headers in capitals (CEK-04)":           {record("x", "CE_SPECVERSION", "1.0", "CE_ID", "x"), event.ReasonBadAttribute, "CE_SPECVERSION"},
		"one attribute header in capitals (CEK-04)":        {full("x", "Ce_subject", "x"), event.ReasonBadAttribute, "Ce_subject"},
		"attribute headers of the HTTP binding":            {record("x", "ce-specversion", "1.0", "ce-id", "x"), event.ReasonMissingAttribute, "specversion"},
		"a content-type that is not UTF-8":                 {full("x", "content-type", "text/\xff"), event.ReasonBadAttribute, "datacontenttype"},
		"an empty content-type":                            {full("x", "content-type", ""), event.ReasonBadAttribute, "datacontenttype"},
		"a header id that is not UTF-8 (CEK-07)":           {record("x", "ce_specversion", "1.0", "ce_id", "\xff\xfe"), event.ReasonBadAttribute, "id"},
		"ce_datacontenttype":                               {full("x", "ce_datacontenttype", "text/plain"), event.ReasonBadAttribute, "datacontenttype"},
		"ce_data":                                          {full("x", "ce_data", "1"), event.ReasonBadAttribute, "data"},
		"ce_data_base64":                                   {full("x", "ce_data_base64", "1"), event.ReasonBadAttribute, "data_base64"},
		"a header that is only the prefix":                 {full("x", "ce_", "1"), event.ReasonBadAttribute, ""},
		"a dash in an attribute's name":                    {full("x", "ce_my-ext", "1"), event.ReasonBadAttribute, "my-ext"},
		"a name that is not UTF-8":                         {full("x", "ce_\xff", "1"), event.ReasonBadAttribute, "\uFFFD"},
		"an attribute twice":                               {full("x", "ce_id", "A"), event.ReasonBadAttribute, "id"},
		"an extension twice":                               {full("x", "ce_a", "1", "ce_b", "", "ce_a", "1"), event.ReasonBadAttribute, "a"},
		"an empty partitionkey (CEK-11)":                   {full("x", "ce_partitionkey", ""), event.ReasonBadAttribute, "partitionkey"},
		"an empty extension":                               {full("x", "ce_empty", ""), "", ""},
		"the headers of a replay and of a trace":           {full("x", "x-worxbend-replay-attempt", "1", "traceparent", "x", "x-worxbend-replay-attempt", "2"), "", ""},
		"a percent sign, which Kafka does not decode":      {full("x", "ce_pct", "100%zz"), "", ""},
		"a byte order mark in front of a structured event": {record("\ufeff"+object, "content-type", structured), event.ReasonMalformedStructured, ""},
	} {
		t.Run(name, func(t *testing.T) { check(t, c.record, c.reason, c.attribute) })
	}
}

func TestANullStructuredValueIsToldFromAnEmptyOne(t *testing.T) {
	for value, want := range map[string]string{"-": "has no value", "": "no value, at byte 0"} {
		r := record(value, "content-type", "application/cloudevents+json")
		if _, f := event.DecodeRecord(&r); f == nil || !strings.Contains(f.Detail, want) {
			t.Errorf("%q: %v, want %q", value, f, want)
		}
	}
}

func check(t *testing.T, r event.Record, reason, attribute string) {
	t.Helper()
	e, f := event.DecodeRecord(&r)
	switch {
	case (e == nil) == (f == nil):
		t.Fatalf("gave both or neither: %v, %v", e, f)
	case reason == "" && f != nil:
		t.Fatalf("refused: %v", f)
	case reason == "":
		if e.ID != "A" || e.SHA256 != sha256.Sum256(r.Value) {
			t.Errorf("id %q, hash %x", e.ID, e.SHA256)
		}
	case f == nil:
		t.Fatalf("accepted: %s", e.Raw)
	case f.Reason != reason || f.Attribute != attribute:
		t.Errorf("%s (attribute %q), want %s (%q)", f, f.Attribute, reason, attribute)
	case attribute != "" && !strings.HasPrefix(f.Detail, attribute):
		t.Errorf("the detail does not begin with its attribute: %s", f.Detail)
	}
}

func TestBinaryPayloadIsKeptAsItsMediaTypeSays(t *testing.T) {
	for name, c := range map[string]struct{ contentType, value, want string }{
		"JSON keeps its spelling":                {"application/json", `{ "b":1, "a":"<&>" , "n":1e3}`, `"data":{ "b":1, "a":"<&>" , "n":1e3}`},
		"text/json":                              {"text/json", `[1]`, `"data":[1]`},
		"a suffix and a parameter":               {"Application/Vnd.X+JSON; charset=utf-8", ` null `, `"data": null `},
		"a JSON string is not parsed again":      {"application/json", `"{\"a\":1}"`, `"data":"{\"a\":1}"`},
		"text":                                   {"text/plain", "a\n\"b\"\\\t\r\x01é", `"data":"a\n\"b\"\\\t\r\u0001é"`},
		"text without content-type (CEH-28)":     {"", "hello", `"data":"hello"`},
		"JSON that is not declared":              {"text/plain", `{"a":1}`, `"data":"{\"a\":1}"`},
		"a media type that only looks like JSON": {"application/jsonl", `{}`, `"data":"{}"`},
		"nothing but a suffix":                   {"application/+json", `{}`, `"data":"{}"`},
		"XML":                                    {"application/xml", `<a>é</a>`, `"data":"<a>é</a>"`},
		"bytes":                                  {"application/octet-stream", "\x00\xff\xfe", `"data_base64":"AP/+"`},
		"text with U+0000, which jsonb has not":  {"text/plain", "a\x00b", `"data_base64":"YQBi"`},
		"an empty text":                          {"text/plain", "", `"data":""`},
		"null with a JSON media type (CEK-08b)":  {"application/json", "-", ``},
		"empty with a JSON media type":           {"application/json", "", ``},
		"null without content-type (CEK-08b)":    {"", "-", ``},
	} {
		t.Run(name, func(t *testing.T) {
			r := full(c.value)
			contentType := ""
			if c.contentType != "" {
				r = full(c.value, "content-type", c.contentType)
				contentType = `,"datacontenttype":"` + c.contentType + `"`
			}
			want := `{"specversion":"1.0","id":"A","source":"/s","type":"t","time":"2026-11-30T09:10:11Z"` + contentType
			if c.want != "" {
				want += "," + c.want
			}
			e, f := event.DecodeRecord(&r)
			if f != nil {
				t.Fatal(f)
			}
			if want += "}"; string(e.Raw) != want {
				t.Errorf("raw is\n%s, want\n%s", e.Raw, want)
			}
			if e.DataContentType != c.contentType {
				t.Errorf("content type %q", e.DataContentType)
			}
		})
	}
	for name, c := range map[string]struct{ value, reason string }{
		"no JSON":               {`{a:1}`, event.ReasonMalformedBinary},
		"white space":           {" ", event.ReasonMalformedBinary},
		"two values":            {`1 2`, event.ReasonMalformedBinary},
		"U+0000 (PG-01)":        {`{"m":"a\u0000b"}`, event.ReasonUnstorableValue},
		"a lone half (PG-04)":   {`"\ude00\ud83d"`, event.ReasonUnstorableValue},
		"a byte FF (PG-05)":     {"\"\xff\"", event.ReasonUnstorableValue},
		"a number beyond":       {`1e131072`, event.ReasonUnstorableValue},
		"512 levels inside one": {strings.Repeat("[", 512) + strings.Repeat("]", 512), event.ReasonUnstorableValue},
	} {
		t.Run("JSON payload: "+name, func(t *testing.T) {
			check(t, full(c.value, "content-type", "application/json"), c.reason, "data")
		})
	}
}

func TestBinaryEventIsWrittenInOneOrder(t *testing.T) {
	headers := []string{"ce_zz", "1", "ce_dataschema", "https://example.com/s", "ce_a", "é\"", "ce_subject", "sub", "content-type", "application/json"}
	r := full("[]", headers...)
	e, f := event.DecodeRecord(&r)
	if f != nil {
		t.Fatal(f)
	}
	const want = `{"specversion":"1.0","id":"A","source":"/s","type":"t","subject":"sub","time":"2026-11-30T09:10:11Z",` +
		`"datacontenttype":"application/json","dataschema":"https://example.com/s","a":"é\"","zz":"1","data":[]}`
	if string(e.Raw) != want {
		t.Errorf("raw is\n%s, want\n%s", e.Raw, want)
	}
	for range len(r.Headers) { // in whatever order the headers come
		r.Headers = append(r.Headers[1:], r.Headers[0])
		if turned, f := event.DecodeRecord(&r); f != nil || !bytes.Equal(turned.Raw, e.Raw) {
			t.Errorf("%v, %s", f, turned.Raw)
		}
	}
}

func TestAHeaderWithoutValueIsAnAttributeThatIsNotSet(t *testing.T) {
	r := full("x")
	r.Headers = append(r.Headers, event.Header{Key: "ce_subject"}, event.Header{Key: "ce_ext"})
	e, f := event.DecodeRecord(&r)
	if f != nil || bytes.Contains(e.Raw, []byte("subject")) || bytes.Contains(e.Raw, []byte("ext")) {
		t.Fatalf("%v, %v", e, f)
	}
	r.Headers[1].Value = nil
	check(t, r, event.ReasonMissingAttribute, "id")
	r.Headers = append(r.Headers, event.Header{Key: "ce_id", Value: []byte("A")})
	check(t, r, event.ReasonBadAttribute, "id")
}

func TestTraceparentIsValidOrAbsent(t *testing.T) {
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	const valid = "00-" + trace + "-" + parent + "-01"
	for name, c := range map[string]struct {
		headers []string
		want    string
	}{
		"none":                                {nil, ""},
		"valid":                               {[]string{"traceparent", valid}, valid},
		"flags that version 00 does not know": {[]string{"traceparent", "00-" + trace + "-" + parent + "-ff"}, "00-" + trace + "-" + parent + "-ff"},
		"twice":                               {[]string{"traceparent", valid, "traceparent", valid}, ""},
		"in capitals":                         {[]string{"traceparent", strings.ToUpper(valid)}, ""},
		"under a capitalised name":            {[]string{"Traceparent", valid}, ""},
		"version ff":                          {[]string{"traceparent", "ff" + valid[2:]}, ""},
		"trace id of zeros":                   {[]string{"traceparent", "00-" + strings.Repeat("0", 32) + "-" + parent + "-01"}, ""},
		"parent id of zeros":                  {[]string{"traceparent", "00-" + trace + "-" + strings.Repeat("0", 16) + "-01"}, ""},
		"too short":                           {[]string{"traceparent", valid[:54]}, ""},
		"version 00 with more behind":         {[]string{"traceparent", valid + "-x"}, ""},
		"a later version":                     {[]string{"traceparent", "01" + valid[2:]}, valid},
		"a later version with more":           {[]string{"traceparent", "cc-" + trace + "-" + parent + "-0a-\xff"}, "00-" + trace + "-" + parent + "-00"},
		"a later version run together":        {[]string{"traceparent", "cc-" + trace + "-" + parent + "-01x"}, ""},
		"a later version sampled by f":        {[]string{"traceparent", "cc-" + trace + "-" + parent + "-0f"}, valid},
		"a separator of another kind":         {[]string{"traceparent", strings.Replace(valid, "-", "_", 1)}, ""},
		"a letter beyond f":                   {[]string{"traceparent", "0g" + valid[2:]}, ""},
		"an empty one":                        {[]string{"traceparent", ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for mode, r := range map[string]event.Record{
				"binary":     full("x", c.headers...),
				"structured": record("{"+core+"}", append([]string{"content-type", "application/cloudevents+json"}, c.headers...)...),
			} {
				e, f := event.DecodeRecord(&r)
				if f != nil || e.Traceparent != c.want {
					t.Errorf("%s: %q (%v), want %q", mode, e.Traceparent, f, c.want)
				}
			}
		})
	}
}
