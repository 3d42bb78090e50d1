package audit

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"appliance/internal/deadletter"
	"appliance/internal/event"
	"appliance/internal/offset"
	"appliance/internal/pg"
)

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		name string
		f    facts
		want Verdict
	}{
		{"a row is a row", facts{row: true, kept: true, processed: true}, Row},
		{"a row with a dead letter is still a row", facts{row: true, letter: true, kept: true, read: true}, Row},
		{"a dead letter with the record's bytes", facts{letter: true, equal: true, read: true, kept: true, processed: true}, DeadLetter},
		{"a dead letter before its checkpoint", facts{letter: true, equal: true, read: true, kept: true}, DeadLetter},
		{"a dead letter that outlived its record cannot be compared", facts{letter: true, processed: true}, DeadLetter},
		{"a dead letter with other bytes is none", facts{letter: true, read: true, kept: true, processed: true}, Unequal},
		{"a row of other bytes than its record", facts{row: true, altered: true, kept: true, read: true, processed: true}, Unequal},
		{"also where a dead letter has them", facts{row: true, altered: true, letter: true, equal: true, kept: true, read: true}, Unequal},
		{"a row of another origin has its identity and other bytes", facts{duplicate: true, other: true, read: true, kept: true, processed: true}, OtherBytes},
		{"the event is in a row of another origin", facts{duplicate: true, read: true, kept: true, processed: true}, Duplicate},
		{"retention took it", facts{processed: true}, Pruned},
		{"no record has the offset", facts{kept: true, processed: true}, Gap},
		{"no record has the offset, beyond the checkpoint", facts{kept: true}, Gap},
		{"not processed yet", facts{read: true, kept: true}, Pending},
		{"processed, and nowhere", facts{read: true, kept: true, processed: true}, Missing},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := classify(c.f); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestSumTellsRecordsApart(t *testing.T) {
	h := func(key string, value []byte) []event.Header { return []event.Header{{Key: key, Value: value}} }
	records := map[string]event.Record{
		"nothing":                   {},
		"an empty key":              {Key: []byte{}},
		"an empty value":            {Value: []byte{}},
		"a key":                     {Key: []byte("a")},
		"a value":                   {Value: []byte("a")},
		"a header without a value":  {Headers: h("a", nil)},
		"a header with an empty":    {Headers: h("a", []byte{})},
		"a header with a value":     {Headers: h("a", []byte("b"))},
		"the same cut elsewhere":    {Headers: h("ab", []byte{})},
		"two headers":               {Headers: append(h("a", nil), h("b", nil)...)},
		"two headers in that order": {Headers: append(h("b", nil), h("a", nil)...)},
		"the same header twice":     {Headers: append(h("a", nil), h("a", nil)...)},
	}
	seen := map[Sum]string{}
	for _, name := range slices.Sorted(maps.Keys(records)) {
		r := records[name]
		sum := SumOf(&r)
		if other, taken := seen[sum]; taken {
			t.Errorf("%s and %s have one sum", name, other)
		}
		seen[sum] = name
		r.Timestamp, r.Topic, r.Offset = time.Unix(1, 0), "t", 7
		if SumOf(&r) != sum {
			t.Errorf("%s: the sum depends on coordinates or time", name)
		}
	}
}

func TestUnprovenIsWhatIsNoRowAndEveryLetter(t *testing.T) {
	b := newBook(100, 100_000, 200, 100_000)
	for o := int64(100); o < 100_000; o++ {
		if o != 5_000 && o != 90_000 {
			b.row(o)
		}
	}
	b.letter(60_000, Sum{})
	b.letter(60_005, Sum{})
	b.letter(150, Sum{}) // retention took its record
	want := []offset.Log{{Start: 5_000, End: 5_001}, {Start: 60_000, End: 60_006}, {Start: 90_000, End: 90_001}}
	if got := b.unproven(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Whatever is entered, every offset has one verdict, what is read covers what needs it, and nothing outside is counted.
func TestEveryOffsetIsCountedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.Int64Range(0, 300).Draw(t, "from")
		until := from + rapid.Int64Range(0, 400).Draw(t, "length")
		b := newBook(from, until, rapid.Int64Range(0, 700).Draw(t, "kept"), rapid.Int64Range(0, 700).Draw(t, "frontier"))
		anywhere := rapid.Int64Range(0, 800)
		rows := rapid.SliceOfDistinct(anywhere, rapid.ID[int64]).Draw(t, "rows")
		for _, o := range rows {
			b.row(o)
		}
		for _, o := range rapid.SliceOf(anywhere).Draw(t, "letters") {
			b.letter(o, Sum{})
		}
		records := 0
		for _, r := range b.unproven() {
			for o := r.Start; o < r.End; o++ {
				if b.read(&event.Record{Offset: o}) {
					records++
				}
			}
		}
		inside := 0
		for _, o := range rows {
			if o >= from && o < until {
				inside++
			}
		}
		c := b.tally(func(int64, Verdict, bool) {})
		sum := c.Rows + c.Duplicates + c.OtherBytes + c.DeadLetters + c.Gaps + c.Pruned + c.Pending + c.Missing + c.Unequal
		if c.Offsets != until-from || sum != c.Offsets || c.Rows != int64(inside) || c.Missing != int64(records) || c.Gaps != 0 {
			t.Fatalf("%+v, %d rows inside, %d records unaccounted", c, inside, records)
		}
	})
}

func TestTallyCountsWhatIsWorthAWarning(t *testing.T) {
	b := newBook(0, 4, 2, 4)
	b.row(0)
	b.row(0)
	b.letter(0, Sum{1})
	b.letter(1, Sum{1})
	b.letter(1, Sum{1})
	b.letter(2, Sum{1})
	var found []string
	b.read(&event.Record{Offset: 2})
	c := b.tally(func(offset int64, v Verdict, both bool) { found = append(found, string(v)) })
	want := Counts{Offsets: 4, Rows: 1, DeadLetters: 1, Gaps: 1, Unequal: 1, LetterCopies: 4, Unverified: 1, Both: 1, RepeatedRows: 1}
	if c != want || !slices.Equal(found, []string{"row", "unequal"}) {
		t.Errorf("got  %+v %v\nwant %+v", c, found, want)
	}
}

func TestSettled(t *testing.T) {
	seven, eight := int64(7), int64(8)
	for _, c := range []struct {
		name                  string
		checkpoint, committed *int64
		end                   int64
		want                  bool
	}{
		{"all three are one", &seven, &seven, 7, true},
		{"the commit lags", &eight, &seven, 8, false},
		{"the checkpoint lags", &seven, &eight, 8, false},
		{"both lag", &seven, &seven, 8, false},
		{"no commit", &seven, nil, 7, false},
		{"a partition that never held a record", nil, nil, 0, true},
		{"records, and nobody began", nil, nil, 7, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := settled(c.checkpoint, c.committed, c.end); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestFindingsOfNeighboursAreOne(t *testing.T) {
	var r Report
	for _, o := range []int64{3, 4, 5, 9} {
		r.find(Finding{Kind: "missing", Topic: "t", First: o, Last: o}, 2)
	}
	r.find(Finding{Kind: "missing", Topic: "t", Partition: 1, First: 10, Last: 10}, 2)
	want := []Finding{{Kind: "missing", Topic: "t", First: 3, Last: 5}, {Kind: "missing", Topic: "t", First: 9, Last: 9}}
	if !reflect.DeepEqual(r.Findings, want) || r.Omitted != 1 {
		t.Errorf("got %+v, %d omitted", r.Findings, r.Omitted)
	}
}

// A letter in parts counts once all are there, in any order and with repeats; without one of them it is a hint.
func TestLettersInParts(t *testing.T) {
	id := [16]byte{1}
	letter := deadletter.Letter{
		Pipeline: "persist", Reason: "unpersistable", At: time.Unix(1, 0),
		Record: event.Record{Topic: "t", TopicID: id, Offset: 3, Key: []byte("k"), Value: make([]byte, 5000)},
	}
	whole, err := letter.Encode(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := letter.Encode(2000)
	if err != nil {
		t.Fatal(err)
	}
	foreign := letter
	foreign.Pipeline = "bridge"
	others, err := foreign.Encode(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	older := letter
	older.Record.TopicID = [16]byte{2}
	deleted, err := older.Encode(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	reversed := slices.Clone(parts)
	slices.Reverse(reversed)
	for _, c := range []struct {
		name     string
		messages []deadletter.Message
		copies   int64
		hint     string
	}{
		{"whole", whole, 1, ""},
		{"whole and in parts", append(slices.Clone(whole), parts...), 2, ""},
		{"parts, the last first, and some again", append(reversed, parts[:2]...), 1, ""},
		{"a part is lacking", parts[1:], 0, fmt.Sprintf("join dead letter: dead letter t/0/3: of %d parts missing [1]", len(parts))},
		{"of another pipeline", others, 0, `only pipeline "bridge" has a dead letter of it`},
		{"of a topic that was deleted since", deleted, 0, ""},
		{"something else", []deadletter.Message{{Value: []byte("x")}}, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBook(0, 10, 0, 10)
			l := newLetters("persist", func(topic string, partition int32) (*book, [16]byte) {
				if topic == "t" && partition == 0 {
					return b, id
				}
				return nil, id
			})
			for _, m := range c.messages {
				l.take(&event.Record{Key: m.Key, Value: m.Value, Headers: m.Headers})
			}
			l.finish()
			proven := b.letters.has(3) && slices.Equal(b.sums[3], []Sum{SumOf(&letter.Record)})
			if b.copies != c.copies || proven != (c.copies > 0) || b.hints[3] != c.hint {
				t.Errorf("%d copies, proven %t, hint %q; want %d, %q", b.copies, proven, b.hints[3], c.copies, c.hint)
			}
		})
	}
}

func TestWhatTheRowOfAnEventSaysAboutARecord(t *testing.T) {
	id, other, sum := [16]byte{1}, [16]byte{2}, [32]byte{3}
	for _, c := range []struct {
		name   string
		stored *pg.Stored
		want   Verdict
	}{
		{"a row of another offset and of other bytes", &pg.Stored{TopicID: id, Partition: 2, Offset: 6, SHA256: []byte{9}}, OtherBytes},
		{"a row that names no record, of other bytes", &pg.Stored{Partition: -1, Offset: -1, SHA256: []byte{9}}, OtherBytes},
		{"no row", nil, Missing},
		{"a row of its own, written since the rows were read", &pg.Stored{TopicID: id, Partition: 2, Offset: 7}, Row},
		{"a row of another offset", &pg.Stored{TopicID: id, Partition: 2, Offset: 6}, Duplicate},
		{"a row of another partition", &pg.Stored{TopicID: id, Partition: 3, Offset: 7}, Duplicate},
		{"a row of a topic that was deleted since", &pg.Stored{TopicID: other, Partition: 2, Offset: 7}, Duplicate},
		{"a row that names no record", &pg.Stored{Partition: -1, Offset: -1}, Duplicate},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBook(0, 10, 0, 10)
			b.read(&event.Record{Offset: 7})
			if c.stored != nil && c.stored.SHA256 == nil {
				c.stored.SHA256 = sum[:]
			}
			question{book: b, topicID: id, part: 2, offset: 7, sha256: sum}.settle(c.stored)
			if got := classify(b.facts(7)); got != c.want || (b.hints[7] != "") != (got == Missing || got == OtherBytes) {
				t.Errorf("got %s, hint %q", got, b.hints[7])
			}
		})
	}
}

func TestBookOf(t *testing.T) {
	at := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		name                  string
		o                     Options
		checkpoint, committed *int64
		from, until, frontier int64
	}{
		{"the whole log, and nothing is processed yet", Options{}, nil, nil, 100, 200, 0},
		{"processed up to the checkpoint, where the commit lags", Options{}, at(150), at(120), 100, 200, 150},
		{"what an outside reset went past will never be processed", Options{}, at(120), at(150), 100, 200, 150},
		{"a range", Options{From: at(110), To: at(120)}, nil, nil, 110, 120, 0},
		{"a range that retention has taken", Options{From: at(0)}, nil, nil, 0, 200, 0},
		{"a range beyond the end", Options{To: at(900)}, nil, nil, 100, 200, 0},
		{"a range beyond the end of this log, which another one may have", Options{From: at(250)}, nil, nil, 250, 250, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := (&auditor{opts: c.o}).bookOf(&part{log: offset.Log{Start: 100, End: 230}, readable: offset.Log{Start: 100, End: 200}, checkpoint: c.checkpoint, committed: c.committed})
			if b.from != c.from || b.until != c.until || b.frontier != c.frontier || b.kept != 100 {
				t.Errorf("[%d, %d), frontier %d, kept %d", b.from, b.until, b.frontier, b.kept)
			}
		})
	}
}
