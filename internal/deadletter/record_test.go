package deadletter_test

import (
	"bytes"
	"slices"
	"time"

	"pgregory.net/rapid"

	"appliance/internal/deadletter"
	"appliance/internal/event"
)

// anyBytes draws nil, empty, text and arbitrary bytes, U+FFFD and U+0000 among them.
func anyBytes() *rapid.Generator[[]byte] {
	return rapid.OneOf(
		rapid.Just([]byte(nil)),
		rapid.Just([]byte{}),
		rapid.Just([]byte("\xef\xbf\xbd kept, \x00 <&> \u2028 \U0001F600")),
		rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) }),
		rapid.SliceOfN(rapid.Byte(), 0, 300),
	)
}

func anyHeader() *rapid.Generator[event.Header] {
	return rapid.Custom(func(t *rapid.T) event.Header {
		key := rapid.OneOf(
			rapid.SampledFrom([]string{"ce_id", "h", "", "\xff\xfe", deadletter.HeaderAttempt, deadletter.HeaderReplayOf}),
			rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 12), func(b []byte) string { return string(b) }),
		).Draw(t, "header key")
		return event.Header{Key: key, Value: anyBytes().Draw(t, "header value")}
	})
}

func anyRecord() *rapid.Generator[event.Record] {
	return rapid.Custom(func(t *rapid.T) event.Record {
		id := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "topic id")
		return event.Record{
			Topic:     rapid.StringMatching(`[a-zA-Z0-9._-]{3,249}`).Draw(t, "topic"),
			TopicID:   [16]byte(id),
			Partition: rapid.Int32Min(0).Draw(t, "partition"),
			Offset:    rapid.Int64Min(0).Draw(t, "offset"),
			Timestamp: time.UnixMilli(rapid.Int64().Draw(t, "timestamp")).UTC(),
			Key:       anyBytes().Draw(t, "key"),
			Value:     anyBytes().Draw(t, "value"),
			Headers:   rapid.SliceOfN(anyHeader(), 0, 6).Draw(t, "headers"),
		}
	})
}

func anyLetter() *rapid.Generator[deadletter.Letter] {
	return rapid.Custom(func(t *rapid.T) deadletter.Letter {
		l := deadletter.Letter{
			Pipeline: rapid.StringN(1, 30, -1).Draw(t, "pipeline"),
			Reason:   rapid.SampledFrom(event.Reasons()).Draw(t, "reason"),
			Detail:   deadletter.Detail(rapid.String().Draw(t, "detail")),
			At:       time.Unix(0, rapid.Int64().Draw(t, "at")).UTC(),
			Record:   anyRecord().Draw(t, "record"),
		}
		if rapid.Bool().Draw(t, "readable") {
			l.Event = &deadletter.Identity{
				ID: rapid.String().Draw(t, "id"), Type: rapid.String().Draw(t, "type"), Source: rapid.String().Draw(t, "source"),
			}
		}
		return l
	})
}

// difference names the first thing that two letters differ in, telling nil from empty, "" where they are the same.
func difference(a, b deadletter.Letter) string {
	sameBytes := func(x, y []byte) bool { return bytes.Equal(x, y) && (x == nil) == (y == nil) }
	sameHeader := func(x, y event.Header) bool { return x.Key == y.Key && sameBytes(x.Value, y.Value) }
	r, s := a.Record, b.Record
	switch {
	case a.Pipeline != b.Pipeline || a.Reason != b.Reason || a.Detail != b.Detail || !a.At.Equal(b.At):
		return "pipeline, reason, detail or time"
	case (a.Event == nil) != (b.Event == nil) || a.Event != nil && *a.Event != *b.Event:
		return "identity"
	case r.Topic != s.Topic || r.TopicID != s.TopicID || r.Partition != s.Partition || r.Offset != s.Offset:
		return "coordinates"
	case !r.Timestamp.Equal(s.Timestamp):
		return "timestamp"
	case !sameBytes(r.Key, s.Key):
		return "key"
	case !sameBytes(r.Value, s.Value):
		return "value"
	case !slices.EqualFunc(r.Headers, s.Headers, sameHeader):
		return "headers"
	}
	return ""
}
