package schema_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"appliance/internal/deadletter"
	"appliance/internal/event"
	"appliance/schema"
)

// compiled returns the schema of that file, formats asserted.
func compiled(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	names, err := fs.Glob(schema.Files, "*.json")
	if err != nil || len(names) != 3 {
		t.Fatalf("schemas %v, %v", names, err)
	}
	ids := map[string]string{}
	for _, n := range names {
		raw, err := schema.Files.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatalf("%s: %v", n, err)
		}
		ids[n] = doc.(map[string]any)["$id"].(string)
		if err := c.AddResource(ids[n], doc); err != nil {
			t.Fatalf("%s: %v", n, err)
		}
	}
	s, err := c.Compile(ids[name])
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return s
}

func check(s *jsonschema.Schema, raw []byte) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	return s.Validate(doc)
}

func letter() deadletter.Letter {
	return deadletter.Letter{
		Pipeline: "persist", Reason: event.ReasonNoTime, Detail: "time: the event has none",
		At: time.Date(2026, 11, 30, 12, 0, 0, 1, time.UTC),
		Record: event.Record{
			Topic: "events.cloudevents.v1", TopicID: [16]byte{1}, Partition: 3, Offset: 9912,
			Timestamp: time.UnixMilli(1_796_000_000_000), Key: []byte("k"), Value: []byte(`{"a":1}`),
			Headers: []event.Header{{Key: "ce_id", Value: []byte("a")}},
		},
	}
}

func TestEveryLetterAndItsPartsAreAsTheSchemasSay(t *testing.T) {
	whole, part := compiled(t, "dead-letter.schema.json"), compiled(t, "dead-letter-part.schema.json")
	anyBytes := rapid.OneOf(rapid.Just([]byte(nil)), rapid.SliceOfN(rapid.Byte(), 0, 9000),
		rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) }))
	rapid.Check(t, func(t *rapid.T) {
		l := letter()
		l.Reason = rapid.SampledFrom(event.Reasons()).Draw(t, "reason")
		l.Pipeline = rapid.StringN(1, 20, -1).Draw(t, "pipeline")
		l.Detail = rapid.String().Draw(t, "detail")
		l.Record.Timestamp = time.UnixMilli(rapid.Int64().Draw(t, "timestamp"))
		l.Record.Key, l.Record.Value = anyBytes.Draw(t, "key"), anyBytes.Draw(t, "value")
		l.Record.Headers = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) event.Header {
			return event.Header{Key: string(anyBytes.Draw(t, "header")), Value: anyBytes.Draw(t, "header value")}
		}), 0, 3).Draw(t, "headers")
		if rapid.Bool().Draw(t, "readable") {
			l.Event = &deadletter.Identity{ID: rapid.String().Draw(t, "id")}
		}
		for _, limit := range []int{1 << 20, 6000} {
			messages, err := l.Encode(limit)
			if err != nil {
				t.Fatal(err)
			}
			s := whole
			if len(messages) > 1 {
				s = part
			}
			for _, m := range messages {
				if err := check(s, m.Value); err != nil {
					t.Fatalf("%v\n%s", err, m.Value)
				}
			}
		}
	})
}

func TestTheSchemasRefuseWhatIsNoLetter(t *testing.T) {
	l := letter()
	one, err := l.Encode(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	l.Record.Value = bytes.Repeat([]byte("a"), 5000)
	several, err := l.Encode(3000)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		schema, good string
		changes      map[string]string
	}{
		{"dead-letter.schema.json", string(one[0].Value), map[string]string{
			`"specversion":"1.0"`:                 `"specversion":"0.3"`,
			`"type":"appliance.deadletter.v1"`:    `"type":"other"`,
			`"id":"events.cloudevents.v1/3/9912"`: `"id":"events.cloudevents.v1/3/09912"`,
			`"reason":"no-time"`:                  `"reason":"because"`,
			`"offset":9912`:                       `"offset":-1`,
			`"timestamp_ms":1796000000000`:        `"timestamp_ms":"now"`,
			`"key":"k"`:                           `"key":"k","key_base64":"//4="`,
			`"value":"{`:                          `"valve":"{`,
			`"attempt":0`:                         `"attempt":-1`,
			`"sha256":"`:                          `"sha256":"0`,
			`"length":7`:                          `"length":7.5`,
			`{"key":"ce_id",`:                     `{"key":null,`,
			`"time":"2026`:                        `"time":"x026`,
			`"detail":"`:                          `"detail":"` + strings.Repeat("d", 1024),
		}},
		{"dead-letter-part.schema.json", string(several[0].Value), map[string]string{
			`"type":"appliance.deadletter.part.v1"`: `"type":"appliance.deadletter.v1"`,
			`"part":1,`:                             `"part":0,`,
			`"reason":"no-time"`:                    `"reason":"because"`,
			`"ref":"events`:                         `"ref":"/events`,
			`"fragment_base64":"`:                   `"fragment_base64":"*`,
		}},
	} {
		s := compiled(t, tc.schema)
		if err := check(s, []byte(tc.good)); err != nil {
			t.Fatal(err)
		}
		for from, to := range tc.changes {
			if !strings.Contains(tc.good, from) {
				t.Fatalf("no %s in %.500s", from, tc.good)
			}
			if check(s, []byte(strings.Replace(tc.good, from, to, 1))) == nil {
				t.Errorf("%s accepts %s", tc.schema, to)
			}
		}
	}
}

func TestTheSchemaOfEventsAndTheDecoderAgree(t *testing.T) {
	s := compiled(t, "event.schema.json")
	const good = `"specversion":"1.0","id":"a","source":"/s","type":"t","time":"2026-11-30T09:00:00Z"`
	long := strings.Repeat("x", 1025)
	for name, tc := range map[string]struct {
		members string
		valid   bool
	}{
		"the least an event has":             {good, true},
		"all attributes":                     {good + `,"subject":"s","datacontenttype":"text/plain","dataschema":"urn:x","data":"d"`, true},
		"data of any kind":                   {good + `,"data":[1.50,{"":null}]`, true},
		"null data":                          {good + `,"data":null`, true},
		"bytes":                              {good + `,"data_base64":"//4="`, true},
		"bytes that are not coded":           {good + `,"data_base64":"//4"`, false},
		"bytes that are a number":            {good + `,"data_base64":7`, false},
		"both payloads":                      {good + `,"data":1,"data_base64":"//4="`, false},
		"a payload beside a null one":        {good + `,"data":null,"data_base64":"//4="`, true},
		"extensions of each kind":            {good + `,"a":"x","b":true,"c":-7,"d":null,"e1":""`, true},
		"an extension that is an object":     {good + `,"a":{}`, false},
		"an extension with a fraction":       {good + `,"a":1.5`, false},
		"an extension beyond 32 bits":        {good + `,"a":2147483648`, false},
		"an extension in upper case":         {good + `,"traceParent":"x"`, false},
		"an extension with an underscore":    {good + `,"trace_parent":"x"`, false},
		"an extension without a name":        {good + `,"":"x"`, false},
		"a long extension":                   {good + `,"a":"` + long + `"`, false},
		"an extension with a line end":       {good + `,"a":"x\n"`, false},
		"an empty partition key":             {good + `,"partitionkey":""`, false},
		"an empty subject":                   {good + `,"subject":""`, false},
		"a null subject":                     {good + `,"subject":null`, true},
		"another specversion":                {strings.Replace(good, "1.0", "0.3", 1), false},
		"an id that is a number":             {strings.Replace(good, `"a"`, `7`, 1), false},
		"an empty id":                        {strings.Replace(good, `"a"`, `""`, 1), false},
		"a null id":                          {strings.Replace(good, `"a"`, `null`, 1), false},
		"a long id":                          {strings.Replace(good, `"a"`, `"`+long+`"`, 1), false},
		"no time":                            {`"specversion":"1.0","id":"a","source":"/s","type":"t"`, false},
		"no source":                          {`"specversion":"1.0","id":"a","type":"t","time":"2026-11-30T09:00:00Z"`, false},
		"a time with an offset":              {strings.Replace(good, "Z", ".123456789+01:30", 1), true},
		"a time in lower case":               {strings.Replace(good, "T09:00:00Z", "t09:00:00z", 1), true},
		"a time without a zone":              {strings.Replace(good, "Z", "", 1), false},
		"a time that is only a day":          {strings.Replace(good, "T09:00:00Z", "", 1), false},
		"an hour that does not exist":        {strings.Replace(good, "T09", "T24", 1), false},
		"a month that does not exist":        {strings.Replace(good, "-11-", "-13-", 1), false},
		"a decimal point without its digits": {strings.Replace(good, "Z", ".Z", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			raw := []byte("{" + tc.members + "}")
			schemaSays := check(s, raw)
			_, fault := event.DecodeJSON(raw)
			if (schemaSays == nil) != tc.valid || (fault == nil) != tc.valid {
				t.Errorf("%s\nwant valid %t\nschema: %v\ndecoder: %v", raw, tc.valid, schemaSays, fault)
			}
		})
	}
}

func TestTheSchemaKnowsEveryReason(t *testing.T) {
	raw, err := schema.Files.ReadFile("dead-letter.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	at := doc
	for _, name := range []string{"$defs", "reason", "enum"} {
		at = at.(map[string]any)[name]
	}
	var got []string
	for _, v := range at.([]any) {
		got = append(got, fmt.Sprint(v))
	}
	if !slices.Equal(got, event.Reasons()) {
		t.Errorf("reasons %v, want %v", got, event.Reasons())
	}
}
