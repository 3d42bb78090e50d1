package deadletter_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"appliance/internal/deadletter"
	"appliance/internal/event"
)

const dlq = "events.dlq"

// noon is when the first record of every tail is written; each further one is a second later.
func noon(seconds int) time.Time {
	return time.UnixMilli(1_796_040_000_000 + 1000*int64(seconds)).UTC()
}

// letterAt is a letter of the record at an offset of partition 0.
func letterAt(offset int64, reason string) deadletter.Letter {
	l := poison()
	l.Reason, l.Record.Partition, l.Record.Offset = reason, 0, offset
	return l
}

// tail is a partition of the dead-letter topic that was read from offset from, one message a second.
func tail(from int64, messages ...deadletter.Message) deadletter.Tail {
	t := deadletter.Tail{From: from, End: from + int64(len(messages)), Whole: true}
	for i, m := range messages {
		t.Records = append(t.Records, event.Record{
			Topic: dlq, Offset: from + int64(i), Timestamp: noon(i), Key: m.Key, Value: m.Value, Headers: m.Headers,
		})
	}
	return t
}

// of makes t a tail of another partition, whose records are some seconds later.
func of(partition int32, t deadletter.Tail, later int) deadletter.Tail {
	t.Partition = partition
	for i := range t.Records {
		t.Records[i].Partition = partition
		t.Records[i].Timestamp = t.Records[i].Timestamp.Add(time.Duration(later) * time.Second)
	}
	return t
}

func messages(t testing.TB, maxBytes int, letters ...deadletter.Letter) []deadletter.Message {
	t.Helper()
	var out []deadletter.Message
	for _, l := range letters {
		m, err := l.Encode(maxBytes)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, m...)
	}
	return out
}

func letters(from, to int64, reason string) []deadletter.Letter {
	var out []deadletter.Letter
	for ; from < to; from++ {
		out = append(out, letterAt(from, reason))
	}
	return out
}

func offsets(p deadletter.Page) []int64 {
	var out []int64
	for _, e := range p.Entries {
		if origin, err := deadletter.ParseRef(e.Ref); err == nil {
			out = append(out, origin.Offset)
		}
	}
	return out
}

func wants(t *testing.T, p deadletter.Page, want ...int64) {
	t.Helper()
	if !slices.Equal(offsets(p), want) {
		t.Errorf("entries %v, want %v", offsets(p), want)
	}
}

func TestThePageIsTheNewestOfAllPartitions(t *testing.T) {
	a := tail(0, messages(t, mebibyte, letters(0, 4, "no-time")...)...)             // noon + 0 1 2 3
	b := of(1, tail(0, messages(t, mebibyte, letters(10, 12, "no-time")...)...), 2) // noon + 2 3
	p := deadletter.Select(deadletter.Request{Limit: 3}, []deadletter.Tail{a, b})
	wants(t, p, 3, 11, 2)
	if p.Scanned != 6 || p.Truncated || p.TimedOut || !p.Newest {
		t.Errorf("%+v", p)
	}
}

func TestAClockThatIsWrongDoesNotReorderAPartition(t *testing.T) {
	a := tail(0, messages(t, mebibyte, letters(0, 4, "no-time")...)...)
	a.Records[2].Timestamp = time.UnixMilli(0)
	wants(t, deadletter.Select(deadletter.Request{Limit: 4}, []deadletter.Tail{a}), 3, 2, 1, 0)
}

func TestAFilterMatchesBehindNewerOnes(t *testing.T) { // DL-09
	all := messages(t, mebibyte, slices.Concat(letters(0, 40, "no-time"), letters(40, 60, "bad-attribute"))...)
	q := deadletter.Request{Limit: 3, Reason: "no-time"}
	far := tail(10, all[10:]...)
	p := deadletter.Select(q, []deadletter.Tail{far})
	wants(t, p, 39, 38, 37)
	if p.Scanned != 50 || p.Truncated || !p.Newest {
		t.Errorf("a full page: %+v", p)
	}
	near := tail(45, all[45:]...)
	p = deadletter.Select(q, []deadletter.Tail{near})
	if len(p.Entries) != 0 || p.Scanned != 15 || !p.Truncated || p.Newest {
		t.Errorf("a bare zero: %+v", p)
	}
	whole := tail(0, all[40:]...)
	p = deadletter.Select(q, []deadletter.Tail{whole})
	if len(p.Entries) != 0 || p.Truncated || !p.Newest {
		t.Errorf("there are none: %+v", p)
	}
}

func TestAPartitionThatWasNotReadToItsEndIsNeverTheNewest(t *testing.T) {
	a := tail(0, messages(t, mebibyte, letters(0, 4, "no-time")...)...)
	a.Whole = false
	for _, limit := range []int{1, 4, 9} {
		if p := deadletter.Select(deadletter.Request{Limit: limit}, []deadletter.Tail{a}); !p.TimedOut || p.Newest {
			t.Errorf("limit %d: %+v", limit, p)
		}
	}
}

// A transaction's markers and compaction leave fewer records than offsets: what lies before may be newer than another
// partition's.
func TestAFullPageSaysWhenAnUnreadRecordMayBelongToIt(t *testing.T) {
	sparse := of(1, tail(90, messages(t, mebibyte, letters(90, 91, "no-time")...)...), 100)
	dense := tail(0, messages(t, mebibyte, letters(0, 4, "no-time")...)...)
	p := deadletter.Select(deadletter.Request{Limit: 3}, []deadletter.Tail{dense, sparse})
	wants(t, p, 90, 3, 2)
	if p.Newest || p.Truncated {
		t.Errorf("%+v", p)
	}
	sparse.Records = nil
	if p := deadletter.Select(deadletter.Request{Limit: 3}, []deadletter.Tail{dense, sparse}); p.Newest {
		t.Errorf("nothing is known of a partition: %+v", p)
	}
}

// Nothing lies before a partition that was read from its start, however young it is.
func TestAPartitionThatWasReadWholeHidesNothing(t *testing.T) {
	old := tail(0, messages(t, mebibyte, letters(0, 3, "no-time")...)...)
	young := of(1, tail(0, messages(t, mebibyte, letters(10, 13, "bad-attribute")...)...), 100)
	p := deadletter.Select(deadletter.Request{Limit: 2, Reason: "no-time"}, []deadletter.Tail{old, young})
	wants(t, p, 2, 1)
	if !p.Newest {
		t.Errorf("%+v", p)
	}
}

func TestCopiesCollapseToTheNewest(t *testing.T) {
	older, newer := letterAt(7, "no-time"), letterAt(7, "bad-attribute")
	p := deadletter.Select(deadletter.Request{Limit: 9}, []deadletter.Tail{
		tail(0, messages(t, mebibyte, older, letterAt(8, "no-time"), newer)...),
		of(1, tail(0, messages(t, mebibyte, older)...), 1),
	})
	wants(t, p, 7, 8)
	if e := p.Entries[0]; e.Copies != 3 || e.Letter.Reason != "bad-attribute" || e.Message.Offset != 2 {
		t.Errorf("%+v", e)
	}
}

func TestARecreatedTopicsLetterIsNoCopy(t *testing.T) {
	other := letterAt(7, "no-time")
	other.Record.TopicID = [16]byte{9}
	p := deadletter.Select(deadletter.Request{Limit: 9}, []deadletter.Tail{tail(0, messages(t, mebibyte, letterAt(7, "no-time"), other)...)})
	wants(t, p, 7, 7)
}

func bulky(offset int64) deadletter.Letter {
	l := letterAt(offset, "no-time")
	l.Record.Value = bytes.Repeat([]byte("x"), 30_000)
	return l
}

func TestPartsAreJoined(t *testing.T) {
	l := bulky(7)
	parts := messages(t, 16_384, l)
	if len(parts) < 3 {
		t.Fatalf("%d parts", len(parts))
	}
	p := deadletter.Select(deadletter.Request{Limit: 9}, []deadletter.Tail{tail(0, slices.Concat(parts, parts[:1])...)})
	if len(p.Entries) != 1 || p.Entries[0].Letter == nil || difference(*p.Entries[0].Letter, l) != "" ||
		p.Entries[0].Parts != len(parts) || p.Entries[0].Copies != 1 {
		t.Errorf("%+v", p)
	}
}

func TestPartsThatLackSomeSayWhich(t *testing.T) {
	parts := messages(t, 16_384, bulky(7))
	p := deadletter.Select(deadletter.Request{Limit: 9, Reason: "no-time"}, []deadletter.Tail{tail(5, parts[1:]...)})
	if len(p.Entries) != 1 || p.Entries[0].Letter != nil || !strings.Contains(p.Entries[0].Problem, "missing [1]") {
		t.Fatalf("%+v", p)
	}
	shown := deadletter.List(p.Entries[0])
	if shown.Readable || shown.Reason != "no-time" || shown.Ref != "events.cloudevents.v1/0/7" || shown.Payload != nil || shown.Origin.Offset != 7 {
		t.Errorf("%+v", shown)
	}
	p = deadletter.Select(deadletter.Request{Limit: 9}, []deadletter.Tail{tail(5, slices.Concat(messages(t, mebibyte, bulky(7)), parts[1:])...)})
	if len(p.Entries) != 1 || p.Entries[0].Letter == nil || p.Entries[0].Copies != 2 {
		t.Errorf("an older copy can be read: %+v", p)
	}
}

func TestPartsThatSayAnotherNameAreNoLetterOfIt(t *testing.T) {
	forged := messages(t, 16_384, bulky(7))
	for i := range forged {
		forged[i].Value = bytes.Replace(forged[i].Value, []byte(`"ref":"events.cloudevents.v1/0/7"`), []byte(`"ref":"events.cloudevents.v1/0/8"`), 1)
	}
	p := deadletter.Select(deadletter.Request{Limit: 9}, []deadletter.Tail{tail(0, forged...)})
	wants(t, p, 8)
	if e := p.Entries[0]; e.Letter != nil || !strings.Contains(e.Problem, "a dead letter of events.cloudevents.v1/0/7") {
		t.Errorf("%+v", e)
	}
}

func TestAForeignRecordIsListedAndCostsNothing(t *testing.T) {
	foreign := deadletter.Message{Value: []byte("not ours \xff")}
	p := deadletter.Select(deadletter.Request{Limit: 9}, []deadletter.Tail{tail(0, slices.Concat(
		messages(t, mebibyte, letterAt(7, "no-time")), []deadletter.Message{foreign, {}})...)})
	if len(p.Entries) != 3 {
		t.Fatalf("%+v", p)
	}
	tombstone, shown := deadletter.List(p.Entries[0]), deadletter.List(p.Entries[1])
	if shown.Readable || shown.Problem == "" || shown.Ref != dlq+"/0/1" || shown.Payload.Text != "not ours \uFFFD" || shown.DeadLetter.Offset != 1 {
		t.Errorf("%+v", shown)
	}
	if tombstone.Readable || tombstone.Payload != nil || tombstone.Problem == "" {
		t.Errorf("%+v", tombstone)
	}
}

func TestRefsAreFoundOrMissing(t *testing.T) {
	read := tail(5, messages(t, mebibyte, letters(0, 5, "no-time")...)...)
	q := deadletter.Request{Limit: 3, Refs: []string{"events.cloudevents.v1/0/1", "events.cloudevents.v1/0/99", "events.cloudevents.v1/0/3"}}
	p := deadletter.Select(q, []deadletter.Tail{read})
	wants(t, p, 3, 1)
	if !slices.Equal(p.Missing, []string{"events.cloudevents.v1/0/99"}) || !p.Truncated {
		t.Errorf("%+v", p)
	}
	q.Refs = q.Refs[:1]
	if p := deadletter.Select(q, []deadletter.Tail{read}); len(p.Missing) != 0 || p.Truncated || !p.Newest {
		t.Errorf("all were found: %+v", p)
	}
}

// Whatever the topic holds: an entry is a letter that was written or a problem, none twice, no more than were asked for,
// each partition's in its order, and the flags do not contradict each other.
func TestSelectIsTotalAndBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tails []deadletter.Tail
		written, refs := 0, map[string]bool{}
		for partition := range rapid.Int32Range(1, 3).Draw(t, "partitions") {
			var all []deadletter.Message
			for range rapid.IntRange(0, 8).Draw(t, "messages") {
				l := bulky(rapid.Int64Range(0, 5).Draw(t, "offset"))
				size := rapid.SampledFrom([]int{mebibyte, 16_384}).Draw(t, "size")
				parts, err := l.Encode(size)
				if err != nil {
					t.Fatal(err)
				}
				if rapid.IntRange(0, 9).Draw(t, "foreign") == 0 {
					parts = []deadletter.Message{{Value: []byte("x")}}
				} else {
					refs[l.Ref()] = true
				}
				all = append(all, parts...)
			}
			from := rapid.IntRange(0, len(all)).Draw(t, "from")
			one := of(partition, tail(int64(from), all[from:]...), rapid.IntRange(-9, 9).Draw(t, "later"))
			one.Whole = rapid.IntRange(0, 4).Draw(t, "whole") > 0
			written += len(one.Records)
			tails = append(tails, one)
		}
		q := deadletter.Request{Limit: rapid.IntRange(1, 10).Draw(t, "limit"), Reason: rapid.SampledFrom([]string{"", "no-time"}).Draw(t, "reason")}
		p := deadletter.Select(q, tails)
		if p.Scanned != written || len(p.Entries) > q.Limit {
			t.Fatalf("%d of %d scanned, %d entries of %d", p.Scanned, written, len(p.Entries), q.Limit)
		}
		if p.Truncated && (len(p.Entries) == q.Limit || p.Newest) || p.TimedOut && p.Newest {
			t.Fatalf("flags %+v", p)
		}
		seen := map[string]bool{}
		last := map[int32]int64{}
		for _, e := range p.Entries {
			if seen[e.Ref] || (e.Letter == nil) != (e.Problem != "") || e.Copies < 1 || e.Letter != nil && !refs[e.Ref] {
				t.Fatalf("entry %+v", e)
			}
			seen[e.Ref] = true
			if before, ok := last[e.Message.Partition]; ok && before < e.Message.Offset {
				t.Fatalf("offset %d after %d", e.Message.Offset, before)
			}
			last[e.Message.Partition] = e.Message.Offset
		}
	})
}

func TestThePreviewIsCutByBytes(t *testing.T) {
	for name, tc := range map[string]struct {
		in   []byte
		want string
		cut  bool
	}{
		"nothing":                       {[]byte{}, "", false},
		"512 bytes":                     {bytes.Repeat([]byte("a"), 512), strings.Repeat("a", 512), false},
		"513 bytes":                     {bytes.Repeat([]byte("a"), 513), strings.Repeat("a", 512), true},
		"a character across the border": {append(bytes.Repeat([]byte("a"), 511), "ü"...), strings.Repeat("a", 511) + "\uFFFD", true},
		"no text":                       {[]byte("a\xffb"), "a\uFFFDb", false},
	} {
		if got := deadletter.NewPreview(tc.in); got.Text != tc.want || got.Bytes != len(tc.in) || got.Truncated != tc.cut {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if deadletter.NewPreview(nil) != nil {
		t.Error("no value has a preview")
	}
}

func TestTheIdentityIsRecoveredAsFarAsItCanBe(t *testing.T) {
	header := func(key, value string) event.Header { return event.Header{Key: key, Value: []byte(value)} }
	for name, tc := range map[string]struct {
		event   *deadletter.Identity
		headers []event.Header
		value   string
		want    deadletter.Identity
	}{
		"what the decoder read":       {&deadletter.Identity{ID: "d"}, []event.Header{header("ce_id", "h")}, `{"id":"j"}`, deadletter.Identity{ID: "d"}},
		"the headers":                 {nil, []event.Header{header("ce_id", "h"), header("CE_Type", "t"), header("ce_source", "s")}, `{"id":"j"}`, deadletter.Identity{ID: "h", Type: "t", Source: "s"}},
		"the payload":                 {nil, []event.Header{header("x", "h")}, `{"id":"j","ID":"J","type":7,"source":"s"}`, deadletter.Identity{ID: "j", Source: "s"}},
		"headers that are no text":    {nil, []event.Header{header("ce_id", "\xff")}, `{"id":"j"}`, deadletter.Identity{ID: "j"}},
		"a header without end":        {nil, []event.Header{header("ce_id", strings.Repeat("a", 1025)), header("ce_type", "t")}, ``, deadletter.Identity{Type: "t"}},
		"nothing":                     {nil, nil, `[1]`, deadletter.Identity{}},
		"half a character in payload": {nil, nil, `{"id":"\ud83d"}`, deadletter.Identity{}},
	} {
		l := poison()
		l.Event, l.Record.Headers, l.Record.Value = tc.event, tc.headers, []byte(tc.value)
		var got deadletter.Identity
		if id := deadletter.Identify(l); id != nil {
			got = *id
		}
		if got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestTheDepthIsAnUpperBound(t *testing.T) {
	d := deadletter.NewDepth(dlq, []deadletter.DepthOf{{0, 5, 25}, {1, 7, 7}}, deadletter.Limits{MaxRecords: 200})
	if d.Outstanding != 20 || !d.OutstandingIsUpperBound || d.Replay.MaxRecords != 200 {
		t.Errorf("%+v", d)
	}
}
