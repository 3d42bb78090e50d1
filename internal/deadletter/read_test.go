package deadletter_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"appliance/internal/deadletter"
	"appliance/internal/event"
)

func TestReadOfWhatIsNoDeadLetter(t *testing.T) {
	good := string(encoded(t, poison()).Value)
	swap := func(old, with string) []byte {
		if !strings.Contains(good, old) {
			t.Fatalf("no %s in %s", old, good)
		}
		return []byte(strings.Replace(good, old, with, 1))
	}
	for name, tc := range map[string]struct {
		value   []byte
		problem string
	}{
		"a tombstone":                      {nil, "without a value"},
		"an empty value":                   {[]byte{}, "not a CloudEvent in JSON"},
		"text":                             {[]byte("hello"), "not a CloudEvent in JSON"},
		"an array":                         {[]byte("[1]"), "not a CloudEvent in JSON"},
		"null":                             {[]byte("null"), "specversion"},
		"an empty object":                  {[]byte("{}"), "specversion"},
		"text after the event":             {[]byte(good + "{}"), "not a CloudEvent in JSON"},
		"bytes that are not UTF-8":         {[]byte("{\"a\":\"\xff\"}"), "not Unicode"},
		"half a surrogate pair":            {swap(`"t"`, `"\ud83d"`), "not Unicode"},
		"the wrong half first":             {swap(`"t"`, `"\ude00\ud83d"`), "not Unicode"},
		"half a pair at the end of text":   {[]byte(`{"a":"\ud83d`), "not Unicode"},
		"another type":                     {swap("appliance.deadletter.v1", "com.example.order"), `"com.example.order" is no dead letter`},
		"another specversion":              {swap(`"specversion":"1.0"`, `"specversion":"0.3"`), "specversion"},
		"no data":                          {swap(`"data":{`, `"other":{`), "data"},
		"data that is no object":           {[]byte(`{"specversion":"1.0","type":"appliance.deadletter.v1","data":7}`), "data"},
		"an id that is not the origin":     {swap(`"id":"events.cloudevents.v1/3/9912"`, `"id":"events.cloudevents.v1/3/1"`), "is not its origin"},
		"a topic that cannot be":           {swap(`"topic":"events.cloudevents.v1"`, `"topic":"a/b"`), "origin"},
		"a topic id that is none":          {swap(`"topic_id":"A`, `"topic_id":"!`), "topic_id"},
		"a negative offset":                {swap(`"offset":9912`, `"offset":-1`), "origin"},
		"an offset with a fraction":        {swap(`"offset":9912`, `"offset":9912.5`), "data"},
		"a value that was changed":         {swap(`1.50`, `1.51`), "SHA-256"},
		"a length that is not the value's": {swap(`"length":24`, `"length":23`), "SHA-256"},
		"no value":                         {swap(`"value":"{`, `"valve":"{`), "value: needs exactly one"},
		"both kinds of a key":              {swap(`"key":null`, `"key":null,"key_base64":""`), "key: needs exactly one"},
		"a header without a key":           {swap(`{"key":"ce_id",`, `{`), "header 0: key"},
		"a header with a null key":         {swap(`{"key":"ce_id",`, `{"key":null,`), "header 0: key: null"},
		"base64 with a stray bit":          {swap(`"//4="`, `"//5="`), "header 0: value"},
		"a time that is none":              {swap(`"time":"2026-`, `"time":"x026-`), "time"},
		"no reason":                        {swap(`"reason":"bad-attribute"`, `"reason":""`), "reason"},
		"a part of nothing":                {[]byte(`{"specversion":"1.0","type":"appliance.deadletter.part.v1","data":{}}`), "ref"},
		"nesting deeper than any reader's": {[]byte(strings.Repeat("[", 100_000)), "not a CloudEvent in JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			r := deadletter.Read(tc.value, nil)
			if r.Letter != nil || r.Part != nil || !strings.Contains(r.Problem, tc.problem) {
				t.Errorf("Read = %+v, want a problem about %s", r, tc.problem)
			}
		})
	}
}

func TestReadOfAPartThatCannotBe(t *testing.T) {
	l := poison()
	l.Record.Value = bytes.Repeat([]byte("a"), 20_000)
	messages, err := l.Encode(10_000)
	if err != nil {
		t.Fatal(err)
	}
	good := string(messages[0].Value)
	for name, swap := range map[string][2]string{
		"no reason":            {`"reason":"bad-attribute"`, `"reason":""`},
		"a negative attempt":   {`"attempt":0`, `"attempt":-1`},
		"a time that is none":  {`"time":"2026-`, `"time":"x026-`},
		"part 0":               {`"part":1,`, `"part":0,`},
		"a part beyond them":   {`"part":1,`, `"part":9999,`},
		"more than there are":  {`"parts":3,`, `"parts":1000000000,`},
		"a ref that is none":   {`"ref":"events`, `"ref":"/events`},
		"a hash that is none":  {`"sha256":"`, `"sha256":"0`},
		"a fragment not coded": {`"fragment_base64":"`, `"fragment_base64":"*`},
	} {
		if !strings.Contains(good, swap[0]) {
			t.Fatalf("no %s in %.600s", swap[0], good)
		}
		if r := deadletter.Read([]byte(strings.Replace(good, swap[0], swap[1], 1)), nil); r.Problem == "" {
			t.Errorf("%s: read as %+v", name, r.Part)
		}
	}
}

func TestReadMindsTheContentType(t *testing.T) {
	value := encoded(t, poison()).Value
	for contentType, readable := range map[string]bool{
		"application/cloudevents+json":                true,
		"Application/CloudEvents+JSON; charset=utf-8": true,
		"application/json":                            false,
		"application/cloudevents-batch+json":          false,
		"":                                            false,
		"\xff":                                        false,
	} {
		headers := []event.Header{{Key: "Content-Type", Value: []byte(contentType)}}
		if r := deadletter.Read(value, headers); (r.Letter != nil) != readable {
			t.Errorf("content-type %q: %+v", contentType, r)
		}
	}
	if r := deadletter.Read(value, nil); r.Letter == nil {
		t.Errorf("without a content-type: %s", r.Problem)
	}
}

func TestReadTakesAnEscapedPair(t *testing.T) {
	for escaped, want := range map[string]string{`\ud83d\ude00`: "\U0001F600", `\\ud83d`: `\ud83d`, `\ud83d\ude00\uD83D\uDE00`: "\U0001F600\U0001F600"} {
		value := bytes.Replace(encoded(t, poison()).Value, []byte(`"key":"ce_type","value":"t"`), []byte(`"key":"ce_type","value":"`+escaped+`"`), 1)
		r := deadletter.Read(value, nil)
		if r.Letter == nil || string(r.Letter.Record.Headers[1].Value) != want {
			t.Errorf("%s: %+v", escaped, r)
		}
	}
}

func TestReadTakesMembersItDoesNotKnow(t *testing.T) {
	value := bytes.Replace(encoded(t, poison()).Value, []byte(`"data":{`), []byte(`"later":1,"data":{"more":[1],`), 1)
	if r := deadletter.Read(value, nil); r.Letter == nil {
		t.Errorf("Read: %s", r.Problem)
	}
}

func FuzzRead(f *testing.F) {
	l := poison()
	one, err := l.Encode(mebibyte)
	if err != nil {
		f.Fatal(err)
	}
	several, err := l.Encode(one[0].Size() - 1)
	if err != nil {
		f.Fatal(err)
	}
	for _, m := range append(one, several...) {
		f.Add(m.Value, deadletter.ContentType)
	}
	f.Add([]byte(`{"specversion":"1.0","type":"appliance.deadletter.v1","data":{"value":"\ud83d\ude00\\ud83d"}}`), "")
	f.Fuzz(func(t *testing.T, value []byte, contentType string) {
		r := deadletter.Read(value, []event.Header{{Key: "content-type", Value: []byte(contentType)}})
		set := 0
		if r.Letter != nil {
			set++
			again := *r.Letter
			messages, err := again.Encode(64 * mebibyte)
			if err != nil {
				t.Fatalf("a letter that was read cannot be written: %v", err)
			}
			second := deadletter.Read(messages[0].Value, messages[0].Headers)
			again.Detail = deadletter.Detail(again.Detail)
			if second.Letter == nil || difference(again, *second.Letter) != "" {
				t.Fatalf("a letter changed when written again: %s", second.Problem)
			}
		}
		if r.Part != nil {
			set++
			if _, err := deadletter.ParseRef(r.Part.Ref); err != nil {
				t.Fatal(err)
			}
		}
		if r.Problem != "" {
			set++
			if !utf8.ValidString(r.Problem) || len(r.Problem) > deadletter.MaxDetail {
				t.Fatalf("problem %q", r.Problem)
			}
		}
		if set != 1 {
			t.Fatalf("read as %d things: %+v", set, r)
		}
	})
}
