package audit

import (
	"slices"
	"strconv"
	"testing"

	"appliance/internal/event"
	"appliance/internal/offset"
	"appliance/internal/pg"
)

func TestWhatADeepAuditSaysAboutARow(t *testing.T) {
	id, sum := [16]byte{1}, [32]byte{3}
	for _, c := range []struct {
		name   string
		known  bool // before the records were read
		stored *pg.Stored
		want   Verdict
	}{
		{"it holds the record's bytes", true, &pg.Stored{TopicID: id, Offset: 7, SHA256: sum[:]}, Row},
		{"it holds others", true, &pg.Stored{TopicID: id, Offset: 7, SHA256: []byte{9}}, Unequal},
		{"it is of another event, and this one has none", true, nil, Unequal},
		{"it is of another event, and this one has a row of another origin", true, &pg.Stored{TopicID: id, Offset: 6, SHA256: sum[:]}, Unequal},
		{"written since, with the record's bytes", false, &pg.Stored{TopicID: id, Offset: 7, SHA256: sum[:]}, Row},
		{"written since, with others", false, &pg.Stored{TopicID: id, Offset: 7, SHA256: []byte{9}}, Unequal},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBook(0, 10, 0, 10)
			b.deep = true
			if c.known {
				b.row(7)
			}
			if ranges := b.unproven(); !b.read(&event.Record{Offset: 7}) || len(ranges) != 1 || ranges[0] != (offset.Log{End: 10}) {
				t.Errorf("read %v", ranges)
			}
			question{book: b, topicID: id, offset: 7, sha256: sum}.settle(c.stored)
			if got := classify(b.facts(7)); got != c.want || (b.hints[7] != "") != (got == Unequal) {
				t.Errorf("got %s, hint %q", got, b.hints[7])
			}
		})
	}
}

func TestAFailureIsListedInPlaceOfAnInformation(t *testing.T) {
	var r Report
	for o, kind := range []string{"both", "missing", "other-bytes", "other-bytes", "unequal", "missing", "both"} {
		r.find(Finding{Kind: kind, Topic: "t", First: int64(o), Last: int64(o), Detail: strconv.Itoa(o)}, 3)
	}
	var kinds []string
	for _, f := range r.Findings {
		kinds = append(kinds, f.Kind+" "+f.Detail)
	}
	if want := []string{"missing 1", "unequal 4", "missing 5"}; !slices.Equal(kinds, want) || r.Omitted != 4 {
		t.Errorf("got %q, %d omitted", kinds, r.Omitted)
	}
}
