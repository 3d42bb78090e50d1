package deadletter_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"appliance/internal/deadletter"
	"appliance/internal/event"
)

const mebibyte = 1 << 20

func poison() deadletter.Letter {
	return deadletter.Letter{
		Pipeline: "persist",
		Reason:   event.ReasonBadAttribute,
		Detail:   "ce_id: bytes that are not UTF-8",
		At:       time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.UTC),
		Event:    &deadletter.Identity{ID: "a", Type: "t", Source: "/s"},
		Record: event.Record{
			Topic: "events.cloudevents.v1", TopicID: [16]byte{1, 2, 3}, Partition: 3, Offset: 9912,
			Timestamp: time.UnixMilli(1_796_000_000_001).UTC(),
			Value:     []byte(`{"a": 1.50, "b": "<ü>"}`),
			Headers:   []event.Header{{Key: "ce_id", Value: []byte{0xFF, 0xFE}}, {Key: "ce_type", Value: []byte("t")}},
		},
	}
}

// encoded returns the letter's one message.
func encoded(t *testing.T, l deadletter.Letter) deadletter.Message {
	t.Helper()
	messages, err := l.Encode(mebibyte)
	if err != nil || len(messages) != 1 {
		t.Fatalf("Encode = %d messages, %v", len(messages), err)
	}
	return messages[0]
}

// read returns the letter that a message holds.
func read(t *testing.T, m deadletter.Message) deadletter.Letter {
	t.Helper()
	r := deadletter.Read(m.Value, m.Headers)
	if r.Letter == nil || r.Part != nil || r.Problem != "" {
		t.Fatalf("Read = %+v", r)
	}
	return *r.Letter
}

// member digs a member out of an envelope; nil is null, and a missing one fails the test.
func member(t *testing.T, value []byte, path ...string) any {
	t.Helper()
	var at any
	if err := json.Unmarshal(value, &at); err != nil {
		t.Fatal(err)
	}
	for _, name := range path {
		object, _ := at.(map[string]any)
		next, ok := object[name]
		if !ok {
			t.Fatalf("no %s in %s", strings.Join(path, "."), value)
		}
		at = next
	}
	return at
}

func TestTheEnvelopeIsACloudEventOfTheOrigin(t *testing.T) {
	m := encoded(t, poison())
	const ref = "events.cloudevents.v1/3/9912"
	if string(m.Key) != ref {
		t.Errorf("key %q", m.Key)
	}
	if len(m.Headers) != 1 || m.Headers[0].Key != "content-type" || string(m.Headers[0].Value) != "application/cloudevents+json" {
		t.Errorf("headers %v", m.Headers)
	}
	for _, want := range []struct {
		value any
		path  []string
	}{
		{"1.0", []string{"specversion"}},
		{ref, []string{"id"}},
		{"/appliance/persist", []string{"source"}},
		{"appliance.deadletter.v1", []string{"type"}},
		{"2026-11-30T12:00:00.123456789Z", []string{"time"}},
		{"bad-attribute", []string{"data", "reason"}},
		{"persist", []string{"data", "pipeline"}},
		{"AQIDAAAAAAAAAAAAAAAAAA", []string{"data", "origin", "topic_id"}},
		{float64(9912), []string{"data", "origin", "offset"}},
		{`{"a": 1.50, "b": "<ü>"}`, []string{"data", "value"}},
		{float64(24), []string{"data", "length"}},
		{nil, []string{"data", "key"}},
		{"/s", []string{"data", "event", "source"}},
	} {
		if got := member(t, m.Value, want.path...); got != want.value {
			t.Errorf("%s = %v, want %v", strings.Join(want.path, "."), got, want.value)
		}
	}
	if !bytes.Contains(m.Value, []byte(`<ü>`)) {
		t.Errorf("the payload is escaped beyond need: %s", m.Value)
	}
	if !bytes.Contains(m.Value, []byte(`"headers":[{"key":"ce_id","value_base64":"//4="}`)) { // CEK-07
		t.Errorf("the header's bytes: %s", m.Value)
	}
}

func TestARecordComesBackExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := anyLetter().Draw(t, "letter")
		messages, err := l.Encode(16 * mebibyte)
		if err != nil || len(messages) != 1 {
			t.Fatalf("Encode = %d messages, %v", len(messages), err)
		}
		r := deadletter.Read(messages[0].Value, messages[0].Headers)
		if r.Letter == nil {
			t.Fatalf("Read: %s", r.Problem)
		}
		if d := difference(l, *r.Letter); d != "" {
			t.Fatalf("%s differs\nfrom %+v\nto   %+v", d, l, *r.Letter)
		}
		if string(messages[0].Key) != l.Ref() || r.Letter.Attempt() != l.Attempt() {
			t.Fatalf("key %q, attempt %d", messages[0].Key, r.Letter.Attempt())
		}
	})
}

func TestNullAndEmptyAndRepeatsAreKept(t *testing.T) { // DL-05
	l := poison()
	l.Record.Key, l.Record.Value = nil, []byte{0xFF, 0x00}
	l.Record.Headers = []event.Header{{Key: "h", Value: []byte("1")}, {Key: "h", Value: []byte("2")}, {Key: "h"}, {Key: "h", Value: []byte{}}}
	m := encoded(t, l)
	const want = `"headers":[{"key":"h","value":"1"},{"key":"h","value":"2"},{"key":"h","value":null},{"key":"h","value":""}]`
	if !bytes.Contains(m.Value, []byte(want)) || !bytes.Contains(m.Value, []byte(`"value_base64":"/wA="`)) {
		t.Errorf("envelope %s", m.Value)
	}
	if d := difference(l, read(t, m)); d != "" {
		t.Errorf("%s differs", d)
	}
}

func TestATombstoneIsNoEmptyValue(t *testing.T) {
	for name, value := range map[string][]byte{"null": nil, "empty": {}} {
		l := poison()
		l.Record.Value = value
		if d := difference(l, read(t, encoded(t, l))); d != "" {
			t.Errorf("%s value: %s differs", name, d)
		}
	}
}

func TestAnIdentityThatIsNoTextIsLeftOut(t *testing.T) {
	l := poison()
	l.Event = &deadletter.Identity{ID: "\xff", Type: "t"}
	m := encoded(t, l)
	if got := read(t, m).Event; got == nil || *got != (deadletter.Identity{Type: "t"}) {
		t.Errorf("identity %+v", got)
	}
	if bytes.Contains(m.Value, []byte("\uFFFD")) || bytes.Contains(m.Value, []byte(`\ufffd`)) {
		t.Errorf("a character was substituted: %s", m.Value)
	}
}

func TestEncodeRefusesOnlyTheCallersMistakes(t *testing.T) {
	for name, spoil := range map[string]func(*deadletter.Letter){
		"no pipeline":                   func(l *deadletter.Letter) { l.Pipeline = "" },
		"a pipeline that is no text":    func(l *deadletter.Letter) { l.Pipeline = "\xff" },
		"no reason":                     func(l *deadletter.Letter) { l.Reason = "" },
		"a reason that is no text":      func(l *deadletter.Letter) { l.Reason = "\xff" },
		"no topic":                      func(l *deadletter.Letter) { l.Record.Topic = "" },
		"a topic with a slash":          func(l *deadletter.Letter) { l.Record.Topic = "a/b" },
		"a negative partition":          func(l *deadletter.Letter) { l.Record.Partition = -1 },
		"a negative offset":             func(l *deadletter.Letter) { l.Record.Offset = -1 },
		"a year RFC 3339 does not have": func(l *deadletter.Letter) { l.At = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		l := poison()
		spoil(&l)
		if _, err := l.Encode(mebibyte); !errors.Is(err, deadletter.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	unnamed := poison()
	unnamed.At = time.Time{}
	if got := read(t, encoded(t, unnamed)); !got.At.IsZero() {
		t.Errorf("a letter without a time got %s", got.At)
	}
}

func TestTheDetailOfALetterIsBoundedAndKeepsNoSecret(t *testing.T) { // DL-03
	l := poison()
	l.Detail = "connect to postgres://app:hunter2@db/events: row " + strings.Repeat("ü\xff", mebibyte)
	got := read(t, encoded(t, l)).Detail
	if strings.Contains(got, "hunter2") || len(got) > deadletter.MaxDetail || strings.Contains(got, "\uFFFD") {
		t.Errorf("detail of %d bytes: %.80s", len(got), got)
	}
}

func TestReplayAttempt(t *testing.T) {
	attempt := func(values ...string) []event.Header {
		headers := []event.Header{{Key: "x-worxbend-replay-attempt2", Value: []byte("7")}}
		for _, v := range values {
			headers = append(headers, event.Header{Key: "x-worxbend-replay-attempt", Value: []byte(v)})
		}
		return headers
	}
	for name, tc := range map[string]struct {
		headers []event.Header
		want    int
	}{
		"no header is no replay":              {attempt(), 0},
		"a first generation":                  {attempt("1"), 1},
		"the highest of several":              {attempt("2", "3", "1"), 3},
		"an unreadable one beside a readable": {attempt("1", "x"), deadletter.Exhausted},
		"an empty one":                        {attempt(""), deadletter.Exhausted},
		"a null one":                          {[]event.Header{{Key: deadletter.HeaderAttempt}}, deadletter.Exhausted},
		"a negative one":                      {attempt("-1"), deadletter.Exhausted},
		"a sign":                              {attempt("+1"), deadletter.Exhausted},
		"a space":                             {attempt(" 1"), deadletter.Exhausted},
		"a leading zero":                      {attempt("01"), deadletter.Exhausted},
		"an exponent":                         {attempt("1e0"), deadletter.Exhausted},
		"digits of another script":            {attempt("٣"), deadletter.Exhausted},
		"more than 31 bits":                   {attempt("2147483648"), deadletter.Exhausted},
	} {
		if got := deadletter.ReplayAttempt(tc.headers); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func TestALetterNamesWhatItIsAReplayOf(t *testing.T) {
	l := poison()
	l.Record.Headers = []event.Header{
		{Key: deadletter.HeaderAttempt, Value: []byte("2")}, {Key: deadletter.HeaderReplayOf, Value: []byte("t/0/7")},
	}
	m := encoded(t, l)
	if got := read(t, m); got.Attempt() != 2 || got.ReplayOf() != "t/0/7" {
		t.Errorf("attempt %d of %q", got.Attempt(), got.ReplayOf())
	}
	if member(t, m.Value, "data", "attempt") != float64(2) || member(t, m.Value, "data", "replay_of") != "t/0/7" {
		t.Errorf("envelope %s", m.Value)
	}
	for _, value := range []string{"\xff", "t/0", "t/0/07", ""} {
		l.Record.Headers[1].Value = []byte(value)
		if got := read(t, encoded(t, l)).ReplayOf(); got != "" {
			t.Errorf("replay of %q", got)
		}
	}
}
