package event_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"appliance/internal/event"
)

func decodeTime(text string) (*event.Event, *event.Fault) {
	return event.DecodeJSON(fmt.Appendf(nil, `{"specversion":"1.0","id":"A","source":"/s","type":"t","time":%q}`, text))
}

func TestTimeIsRFC3339(t *testing.T) {
	for text, want := range map[string]string{
		"2026-11-15T01:02:03Z":                     "2026-11-15T01:02:03Z",
		"2026-11-15t01:02:03z":                     "2026-11-15T01:02:03Z",
		"2026-11-15T01:02:03.123456789+05:30":      "2026-11-14T19:32:03.123456Z",
		"2026-11-15T01:02:03-00:00":                "2026-11-15T01:02:03Z",
		"2026-11-15T01:02:03.1Z":                   "2026-11-15T01:02:03.1Z",
		"2026-11-15T01:02:03.9999999999999999999Z": "2026-11-15T01:02:03.999999Z",
		"1969-12-31T23:59:59.9999999Z":             "1969-12-31T23:59:59.999999Z",
		"2024-02-29T00:00:00+23:59":                "2024-02-28T00:01:00Z",
		"2000-02-29T00:00:00Z":                     "2000-02-29T00:00:00Z",
		"0001-01-01T00:00:00Z":                     "0001-01-01T00:00:00Z",
		"9999-12-31T23:59:59-23:59":                "10000-01-01T23:58:59Z",
		"2016-12-31T23:59:60Z":                     "2017-01-01T00:00:00Z",
		"2017-01-01T05:29:60.5+05:30":              "2017-01-01T00:00:00.5Z",
		"1990-12-31T15:59:60-08:00":                "1991-01-01T00:00:00Z",
	} {
		e, f := decodeTime(text)
		if f != nil {
			t.Errorf("%s: %v", text, f)
			continue
		}
		if got := e.OccurredAt.Format(time.RFC3339Nano); got != want || e.Time != text || e.OccurredAt.Location() != time.UTC {
			t.Errorf("%s is %s (kept as %s), want %s", text, got, e.Time, want)
		}
	}
	for _, text := range []string{
		"2020-07-16T13:53:54.5America/Los_Angeles", "2026-11-15 01:02:03", "2026-11-15T01:02:03", "2026-11-15 01:02:03Z",
		"2026-11-15", "2026-11-15T01:02Z", "2026-11-15T01:02:03.Z", "2026-11-15T01:02:03,5Z", "2026-11-15T01:02:03+0530",
		"2026-11-15T01:02:03+05", "2026-11-15T01:02:03+5:30", "2026-11-15T01:02:03+24:00", "2026-11-15T01:02:03+05:60",
		"2026-11-15T01:02:03 Z", "2026-11-15T01:02:03Z ", " 2026-11-15T01:02:03Z", "2026-11-15T01:02:03ZZ", "2026-11-15T01:02:03UTC",
		"2026-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z",
		"2026-04-31T00:00:00Z", "2026-11-15T24:00:00Z", "2026-11-15T23:60:00Z", "2026-11-15T23:59:61Z", "2026-11-15T23:59:60Z",
		"2016-12-31T22:59:60Z", "2017-01-01T00:09:60Z", "2016-12-31T23:59:60+01:00", "26-11-15T01:02:03Z", "+2026-11-15T01:02:03Z", "-026-11-15T01:02:03Z",
		"12026-11-15T01:02:03Z", "2026/11/15T01:02:03Z", "2026-11-15T01.02.03Z", "now", "infinity", "1763168523", "２026-11-15T01:02:03Z",
		"2026-11-15T01:02:03\u221205:30", "2026-11-15T01:02:03.1" + strings.Repeat("0", 1100) + "Z",
	} {
		if e, f := decodeTime(text); e != nil || f == nil || f.Reason != event.ReasonBadAttribute || f.Attribute != "time" {
			t.Errorf("%s: %v, %v, want bad-attribute", text, e, f)
		}
	}
}

func TestTimeAgreesWithTheStandardLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(-62135500000, 253402200000).Draw(t, "seconds"), rapid.Int64Range(0, 999999999).Draw(t, "nanos"))
		zone := time.FixedZone("", 60*rapid.IntRange(-1439, 1439).Draw(t, "offset"))
		text := at.In(zone).Format(time.RFC3339Nano)
		want, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		e, f := decodeTime(text)
		if f != nil {
			t.Fatal(f)
		}
		micros := want.Add(-time.Duration(want.Nanosecond() % 1000))
		if !e.OccurredAt.Equal(micros) {
			t.Errorf("%s is %s, want %s", text, e.OccurredAt, micros)
		}
	})
}
