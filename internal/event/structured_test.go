package event_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"appliance/internal/event"
)

func TestStructuredEventKeepsOrBreaksARule(t *testing.T) {
	const bad, malformed = event.ReasonBadAttribute, event.ReasonMalformedStructured
	for name, c := range map[string]struct {
		members   string // behind the required ones
		reason    string
		attribute string
	}{
		"nothing more":                                {``, "", ""},
		"every attribute":                             {`,"subject":"s","dataschema":"https://x/y","datacontenttype":"application/json","ext":"","n":-5,"b":false`, "", ""},
		"null is unset":                               {`,"subject":null,"dataschema":null,"datacontenttype":null,"ext":null,"data":null,"data_base64":null`, "", ""},
		"the integers at both ends":                   {`,"lo":-2147483648,"hi":2147483647,"zero":-0`, "", ""},
		"an integer beyond (CEH-29)":                  {`,"n":2147483648`, bad, "n"},
		"an integer beyond below (CEH-29)":            {`,"n":-2147483649`, bad, "n"},
		"an integer far beyond (CEH-29)":              {`,"n":99999999999999999999999999`, bad, "n"},
		"a fraction (CEH-29)":                         {`,"n":1.5`, bad, "n"},
		"an integer in exponent form (CEH-29)":        {`,"n":1e2`, bad, "n"},
		"an integer with a fraction of zero (CEH-29)": {`,"n":1.0`, bad, "n"},
		"an object as extension (CEH-29)":             {`,"n":{"a":1}`, bad, "n"},
		"an array as extension (CEH-29)":              {`,"n":[1]`, bad, "n"},
		"a subject that is a number":                  {`,"subject":5`, bad, "subject"},
		"an empty subject (CEH-34)":                   {`,"subject":""`, bad, "subject"},
		"an empty dataschema (CEH-34)":                {`,"dataschema":""`, bad, "dataschema"},
		"an empty datacontenttype":                    {`,"datacontenttype":""`, bad, "datacontenttype"},
		"an empty partitionkey (CEK-11)":              {`,"partitionkey":""`, bad, "partitionkey"},
		"an upper-case name (CEH-19)":                 {`,"myExt":1`, bad, "myExt"},
		"a name with an underscore (CEH-19)":          {`,"my_ext":1`, bad, "my_ext"},
		"an empty name (CEH-19)":                      {`,"":1`, bad, ""},
		"a name outside ASCII (CEH-19)":               {`,"é":1`, bad, "é"},
		"a name of 1,024 letters":                     {`,"` + strings.Repeat("a", 1024) + `":1`, "", ""},
		"a name of 1,025 letters":                     {`,"` + strings.Repeat("a", 1025) + `":1`, bad, strings.Repeat("a", 128)},
		"an attribute of 1,024 bytes":                 {`,"ext":"` + random(1024) + `"`, "", ""},
		"an attribute of 1,025 bytes (PG-07)":         {`,"ext":"` + random(1025) + `"`, bad, "ext"},
		"1,024 bytes by escapes":                      {`,"ext":"` + strings.Repeat(`\u00e9`, 512) + `"`, "", ""},
		"1,026 bytes by escapes":                      {`,"ext":"` + strings.Repeat(`\u00e9`, 513) + `"`, bad, "ext"},
		"an id twice":                                 {`,"id":"B"`, bad, "id"},
		"an id twice, once escaped":                   {`,"\u0069d":"A"`, bad, "id"},
		"an extension twice, once null":               {`,"x":null,"y":1,"x":"a"`, bad, "x"},
		"a subject twice, once null":                  {`,"subject":null,"subject":"a"`, bad, "subject"},
		"data twice":                                  {`,"data":1,"data":1`, malformed, "data"},
		"data_base64 twice":                           {`,"data_base64":"","data_base64":""`, malformed, "data_base64"},
		"both payloads (CEH-22)":                      {`,"data":"aGk=","data_base64":"aGk="`, malformed, "data_base64"},
		"base64":                                      {`,"data_base64":"AP/+"`, "", ""},
		"base64 with escaped slashes":                 {`,"data_base64":"\/\/\/\/"`, "", ""},
		"base64 that is empty":                        {`,"data_base64":""`, "", ""},
		"base64 without padding":                      {`,"data_base64":"aGk"`, malformed, "data_base64"},
		"base64 with padding inside":                  {`,"data_base64":"aG=k"`, malformed, "data_base64"},
		"base64 of padding alone":                     {`,"data_base64":"===="`, malformed, "data_base64"},
		"base64 with three paddings":                  {`,"data_base64":"A==="`, malformed, "data_base64"},
		"base64 with a line end":                      {`,"data_base64":"aG\nk="`, malformed, "data_base64"},
		"base64 for URLs":                             {`,"data_base64":"AP_-"`, malformed, "data_base64"},
		"base64 that is a number":                     {`,"data_base64":1`, malformed, "data_base64"},
		"a string payload is not parsed (CEH-26)":     {`,"datacontenttype":"application/json","data":"{\"a\":1}"`, "", ""},
		"a control character by escape":               {`,"ext":"a\u0001"`, bad, "ext"},
		"a control character of C1":                   {`,"ext":"a` + "\u0085" + `"`, bad, "ext"},
		"the delete character":                        {`,"ext":"12345678` + "\x7f" + `"`, bad, "ext"},
		"a noncharacter":                              {`,"ext":"\ufdd0"`, bad, "ext"},
		"a noncharacter of a higher plane":            {`,"ext":"\ud83f\udfff"`, bad, "ext"},
		"U+0000 in an attribute":                      {`,"ext":"a\u0000"`, bad, "ext"},
		"half a surrogate pair in an attribute":       {`,"ext":"\ud83d"`, bad, "ext"},
		"a byte FF in an attribute":                   {",\"ext\":\"\xff\"", bad, "ext"},
		"a pair of surrogates in an attribute":        {`,"ext":"\ud83d\ude00"`, "", ""},
		"U+0000 in data (PG-01)":                      {`,"data":{"m":"a\u0000b"}`, event.ReasonUnstorableValue, "data"},
		"half a surrogate pair in data (PG-04)":       {`,"data":"\ud83d"`, event.ReasonUnstorableValue, "data"},
		"half a surrogate pair in a name (PG-04)":     {`,"data":{"\udfaa":0}`, event.ReasonUnstorableValue, "data"},
		"a byte FF in data (PG-05)":                   {",\"data\":\"\xff\"", event.ReasonUnstorableValue, "data"},
		"a number beyond numeric":                     {`,"data":[1e131072]`, event.ReasonUnstorableValue, "data"},
		"data nested to the limit":                    {`,"data":` + strings.Repeat("[", 511) + strings.Repeat("]", 511), "", ""},
		"data nested beyond the limit":                {`,"data":` + strings.Repeat("[", 512) + strings.Repeat("]", 512), event.ReasonUnstorableValue, "data"},
		"U+0000 in a name of the event":               {`,"a\u0000":1`, event.ReasonUnstorableValue, ""},
		"a second event behind (CEH-42)":              {`}{`, malformed, ""},
		"text behind (CEH-42)":                        {`} x`, malformed, ""},
		"a comma behind the last member":              {`,`, malformed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, record("{"+core+c.members+"}", "content-type", "application/cloudevents+json"), c.reason, c.attribute)
		})
	}
}

// random returns n letters that do not compress.
func random(n int) string {
	source := rand.New(rand.NewPCG(3, 4))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + source.IntN(26))
	}
	return string(b)
}

func TestRequiredAttributes(t *testing.T) {
	const missing, bad = event.ReasonMissingAttribute, event.ReasonBadAttribute
	for name, c := range map[string]struct{ text, reason, attribute string }{
		"specversion absent (CEH-32)":          {`{"id":"A","source":"/s","type":"t"}`, missing, "specversion"},
		"specversion null":                     {`{"specversion":null,"id":"A"}`, missing, "specversion"},
		"specversion 0.3 (CEH-32)":             {`{"specversion":"0.3","id":"A","source":"/s","type":"t"}`, bad, "specversion"},
		"specversion 1.0.2 (CEH-32)":           {`{"specversion":"1.0.2","id":"A","source":"/s","type":"t"}`, bad, "specversion"},
		"specversion as a number":              {`{"specversion":1.0,"id":"A","source":"/s","type":"t"}`, bad, "specversion"},
		"id absent":                            {`{"specversion":"1.0","source":"/s","type":"t"}`, missing, "id"},
		"id empty (CEH-34)":                    {`{"specversion":"1.0","id":"","source":"/s","type":"t"}`, bad, "id"},
		"id a number":                          {`{"specversion":"1.0","id":5,"source":"/s","type":"t"}`, bad, "id"},
		"source absent":                        {`{"specversion":"1.0","id":"A","type":"t"}`, missing, "source"},
		"source an object":                     {`{"specversion":"1.0","id":"A","source":{},"type":"t"}`, bad, "source"},
		"type null":                            {`{"specversion":"1.0","id":"A","source":"/s","type":null}`, missing, "type"},
		"type a boolean":                       {`{"specversion":"1.0","id":"A","source":"/s","type":true}`, bad, "type"},
		"time absent (CEH-41)":                 {`{"specversion":"1.0","id":"A","source":"/s","type":"t"}`, event.ReasonNoTime, "time"},
		"time null (CEH-41)":                   {`{"specversion":"1.0","id":"A","source":"/s","type":"t","time":null}`, event.ReasonNoTime, "time"},
		"time empty":                           {`{"specversion":"1.0","id":"A","source":"/s","type":"t","time":""}`, bad, "time"},
		"time a number":                        {`{"specversion":"1.0","id":"A","source":"/s","type":"t","time":1}`, bad, "time"},
		"no member at all":                     {`{}`, missing, "specversion"},
		"an array":                             {`[]`, event.ReasonMalformedStructured, ""},
		"a string":                             {`"x"`, event.ReasonMalformedStructured, ""},
		"no JSON":                              {`id: A`, event.ReasonMalformedStructured, ""},
		"white space":                          {"\n", event.ReasonMalformedStructured, ""},
		"an object cut short":                  {`{"id":"A"`, event.ReasonMalformedStructured, ""},
		"an object cut short inside a string":  {`{"id":"A`, event.ReasonMalformedStructured, ""},
		"source and id of 2,001 bytes (PG-07)": {fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":%q,"type":"t"}`, random(1000), random(1001)), bad, "id"},
		"id of 2,700 random letters (PG-07)":   {fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":"/s","type":"t"}`, random(2700)), bad, "id"},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, record(c.text, "content-type", "application/cloudevents+json"), c.reason, c.attribute)
			if e, f := event.DecodeJSON([]byte(c.text)); e != nil || f == nil || f.Reason != c.reason {
				t.Errorf("DecodeJSON: %v, %v", e, f)
			}
		})
	}
	longest := fmt.Appendf(nil, `{"specversion":"1.0","id":%q,"source":%q,"type":"t","time":"2026-11-30T09:10:11Z"}`, random(1000), random(1000))
	if _, f := event.DecodeJSON(longest); f != nil {
		t.Errorf("source and id of 2,000 bytes: %v", f)
	}
}

func TestDecodeJSONReadsWhatWasWritten(t *testing.T) {
	raw := []byte(" {\"data\" : {\"x\":[1e3]},\"\\u0074ype\":\"t\\/\\u00e9\\ud83d\\ude00\\\"\\n\" , \"specversion\":\"1.0\",\"id\":\"a\",\"source\":\"/s\"} ")
	if _, f := event.DecodeJSON(raw); f == nil || f.Attribute != "type" {
		t.Errorf("a line end in an attribute: %v", f)
	}
	raw = []byte(" {\"data\" : {\"x\":[1e3]},\"\\u0074ype\":\"t\\/\\u00e9\\ud83d\\ude00\\\"\\\\\" , \"specversion\":\"1.0\",\"id\":\"a b\"," +
		"\"source\":\"/s\",\"subject\":\"Euro €\",\"time\":\"2026-11-15t01:02:03.123456789+05:30\",\"datacontenttype\":\"application/json\"}\n")
	e, f := event.DecodeJSON(raw)
	if f != nil {
		t.Fatal(f)
	}
	want := event.Event{
		ID: "a b", Source: "/s", Type: "t/é😀\"\\", Subject: "Euro €", DataContentType: "application/json",
		Time:       "2026-11-15t01:02:03.123456789+05:30",
		OccurredAt: time.Date(2026, 11, 14, 19, 32, 3, 123456000, time.UTC),
		SHA256:     sha256.Sum256(raw),
	}
	if &e.Raw[0] != &raw[0] || len(e.Raw) != len(raw) {
		t.Error("raw is not the text itself")
	}
	if e.Raw = nil; fmt.Sprint(*e) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", *e, want)
	}
	raw[len(raw)/2]++ // what shares the text must not change the attributes
	if e.Subject != want.Subject || e.Time != want.Time {
		t.Error("the attributes alias the text")
	}
}

func TestNullAttributesAreEmpty(t *testing.T) {
	e, f := event.DecodeJSON([]byte(`{` + core + `,"subject":null,"datacontenttype":null}`))
	if f != nil || e.Subject != "" || e.DataContentType != "" {
		t.Errorf("%v, %+v", f, e)
	}
}

// An event with as many extensions as fit into a record is decided in less than quadratic time.
func TestManyExtensionsAreDecided(t *testing.T) {
	var b strings.Builder
	b.WriteString("{" + core)
	for i := range 60000 {
		fmt.Fprintf(&b, `,"x%d":1`, i)
	}
	if _, f := event.DecodeJSON([]byte(b.String() + "}")); f != nil {
		t.Error(f)
	}
	if _, f := event.DecodeJSON([]byte(b.String() + `,"x17":1}`)); f == nil || f.Attribute != "x17" {
		t.Errorf("a repeat among many: %v", f)
	}
}
