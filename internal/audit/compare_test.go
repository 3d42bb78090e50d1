package audit_test

import (
	"strings"
	"testing"

	"appliance/internal/audit"
)

// The second of two records of one identity is in no row, whatever it says: an auditor who counted it as the same event
// would never hear of it.
func TestADuplicateOfOtherBytesIsToldApart(t *testing.T) {
	b := setup(t)
	lines := b.lines(2)
	altered := []byte(strings.Replace(string(lines[0]), `"data":{`, `"data":{"altered":true,`, 1))
	records := b.produce(lines[0], lines[1], lines[0], altered)
	b.store(4, records[0], records[1])
	r := b.audit(audit.Options{})
	want := audit.Counts{Offsets: 4, Rows: 2, Duplicates: 1, OtherBytes: 1}
	if r.Total != want || !r.Proven || len(r.Findings) != 1 {
		t.Fatalf("got  %+v proven %t %v\nwant %+v", r.Total, r.Proven, r.Findings, want)
	}
	if f := r.Findings[0]; f.Kind != "other-bytes" || f.First != 3 || !strings.Contains(f.Detail, "has a row of other bytes, which came from partition 0, offset 0") {
		t.Errorf("%+v", f)
	}
}

func TestADeepAuditComparesRowsWithTheirRecords(t *testing.T) {
	b := setup(t)
	lines := b.lines(5)
	lines[3] = []byte("no event")
	records := b.produce(lines...)
	otherBytes := records[1]
	otherBytes.Value = append([]byte(" "), otherBytes.Value...)
	otherEvent := records[4] // under the coordinates of another record
	otherEvent.Offset = 2
	noEvent := records[2]
	noEvent.Offset = 3
	b.store(4, records[0], otherBytes, otherEvent, noEvent)
	if r := b.audit(audit.Options{}); r.Total != (audit.Counts{Offsets: 5, Rows: 4, Pending: 1}) {
		t.Errorf("what holds what is not asked: %+v", r.Total)
	}
	r := b.audit(audit.Options{Deep: true, AllowPending: true})
	if want := (audit.Counts{Offsets: 5, Rows: 1, Unequal: 3, Pending: 1}); r.Total != want || r.Proven || len(r.Findings) != 3 {
		t.Fatalf("got  %+v proven %t %v\nwant %+v", r.Total, r.Proven, r.Findings, want)
	}
	for i, says := range []string{"payload_sha256 is not that of the record", "of another event than the record", "the record is no event: malformed-structured"} {
		if f := r.Findings[i]; f.Kind != "unequal" || f.First != int64(i+1) || !strings.Contains(f.Detail, says) {
			t.Errorf("%+v lacks %q", f, says)
		}
	}
}
