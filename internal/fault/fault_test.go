package fault_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"appliance/internal/event"
	"appliance/internal/fault"
)

func TestClassify(t *testing.T) {
	const identity = "cloud_event_2026_05_occurred_at_ce_source_ce_id_idx"
	for name, tc := range map[string]struct {
		code, constraint string
		want             fault.Verdict
	}{
		"no SQLSTATE: the connection broke (PG-24)":                  {"", "", fault.Transient},
		"something that is no SQLSTATE":                              {"P", "", fault.Transient},
		"U+0000 in jsonb (PG-01)":                                    {"22P05", "", fault.Record},
		"half a surrogate pair (PG-04)":                              {"22P02", "", fault.Record},
		"bytes that are not UTF-8 (PG-05)":                           {"22021", "", fault.Record},
		"a key too long for its index (PG-07)":                       {"54000", "", fault.Record},
		"nesting beyond the stack":                                   {"54001", "", fault.Record},
		"too many columns is a limit of no single record":            {"54011", "", fault.Transient},
		"a check of the table (PG-11)":                               {"23514", "cloud_event_specversion_ck", fault.Record},
		"no partition takes the row":                                 {"23514", "", fault.NoPartition},
		"a null in a required column":                                {"23502", "", fault.Record},
		"the identity index of a partition":                          {"23505", identity, fault.Duplicate},
		"the identity index of a partition made again":               {"23505", identity + "1", fault.Duplicate},
		"the identity index of the table":                            {"23505", "cloud_event_identity_uk", fault.Duplicate},
		"another unique index of a partition":                        {"23505", "cloud_event_2026_05_event_uid_idx", fault.Record},
		"a unique index without a name":                              {"23505", "", fault.Record},
		"the exclusion constraint named like the identity":           {"23P01", identity, fault.Record},
		"an aborted transaction attributes nothing (PG-17)":          {"25P02", "", fault.Transient},
		"a statement that touches a row twice (PG-19)":               {"21000", "", fault.Defect},
		"a deadlock (PG-23)":                                         {"40P01", "", fault.Transient},
		"a serialization failure (PG-24)":                            {"40001", "", fault.Transient},
		"a lock that is not there in time (PG-24)":                   {"55P03", "", fault.Transient},
		"a statement timeout (PG-24)":                                {"57014", "", fault.Transient},
		"a shutdown (PG-24)":                                         {"57P01", "", fault.Transient},
		"a server that starts (PG-24)":                               {"57P03", "", fault.Transient},
		"a connection failure (PG-24)":                               {"08006", "", fault.Transient},
		"a full disk (PG-24)":                                        {"53100", "", fault.Transient},
		"too many connections (PG-24)":                               {"53300", "", fault.Transient},
		"an internal error (PG-24, PG-35)":                           {"XX000", "", fault.Transient},
		"a corrupt index":                                            {"XX002", "", fault.Transient},
		"a stale plan (PG-26)":                                       {"0A000", "", fault.Transient},
		"a missing privilege (PG-31)":                                {"42501", "", fault.Defect},
		"a missing column (PG-31)":                                   {"42703", "", fault.Defect},
		"a missing table":                                            {"42P01", "", fault.Defect},
		"a generated column that is not immutable (PG-37)":           {"42P17", "", fault.Defect},
		"a fenced writer":                                            {"AP001", "", fault.Transient},
		"a raised exception of somebody's trigger":                   {"P0001", "", fault.Transient},
		"wrong credentials":                                          {"28P01", "", fault.Transient},
		"a class that no PostgreSQL has":                             {"ZZ999", "", fault.Transient},
		"a class alone is not what servers send, and decides itself": {"22", "", fault.Record},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fault.Classify(tc.code, tc.constraint); got != tc.want {
				t.Errorf("Classify(%q, %q) = %s, want %s", tc.code, tc.constraint, got, tc.want)
			}
		})
	}
}

// appendixA is every class of PostgreSQL's Appendix A and of earlier releases, with what a code of it that has no row of
// its own means.
func appendixA() map[string]fault.Verdict {
	classes := map[string]fault.Verdict{
		"21": fault.Defect, "22": fault.Record, "23": fault.Record, "42": fault.Defect,
	}
	for class := range strings.FieldsSeq(`00 01 02 03 08 09 0A 0B 0F 0L 0P 0Z 10 20 24 25 26 27 28 2B 2D 2F 34 38 39 3B
		3D 3F 40 44 53 54 55 57 58 72 F0 HV P0 XX`) {
		classes[class] = fault.Transient
	}
	return classes
}

func TestClassifyEveryClassOfAppendixA(t *testing.T) {
	for class, want := range appendixA() {
		for _, rest := range []string{"000", "0ZZ", "ZZZ"} {
			code := class + rest
			if fault.Default().Row(code).Code == code {
				continue // has a verdict of its own, which TestClassify states
			}
			if got := fault.Classify(code, "some_constraint"); got != want {
				t.Errorf("Classify(%s) = %s, want %s", code, got, want)
			}
		}
	}
}

func TestTheTableHasOneRowACodeAndEachIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range fault.Default().Rows {
		if seen[r.Code] {
			t.Errorf("%q has two rows", r.Code)
		}
		seen[r.Code] = true
		if n := len(r.Code); n != 0 && n != 2 && n != 5 {
			t.Errorf("%q is neither a code nor a class", r.Code)
		}
		if r.Title == "" || r.Why == "" || r.Do == "" {
			t.Errorf("%q explains nothing: %+v", r.Code, r)
		}
		if r.AtOnce && r.Verdict != fault.Transient {
			t.Errorf("%q is tried at once and is %s", r.Code, r.Verdict)
		}
	}
	if !seen[""] {
		t.Error("no row for everything else")
	}
	if !fault.Default().Row("0A000").AtOnce || fault.Default().Row("40001").AtOnce {
		t.Error("a stale plan, and only that, is tried again at once")
	}
}

func TestPartition(t *testing.T) {
	from, to := time.Date(2025, 11, 1, 0, 0, 0, 0, time.UTC), time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		at   time.Time
		want fault.Verdict
	}{
		"before the window":           {from.Add(-time.Microsecond), fault.Record},
		"at its first instant":        {from, fault.Transient},
		"within":                      {from.AddDate(0, 5, 3), fault.Transient},
		"at its last microsecond":     {to.Add(-time.Microsecond), fault.Transient},
		"at its end, which is beyond": {to, fault.Record},
		"in another time zone":        {from.In(time.FixedZone("", -3600)), fault.Transient},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fault.Partition(tc.at, from, to); got != tc.want {
				t.Errorf("Partition(%s) = %s, want %s", tc.at, got, tc.want)
			}
		})
	}
}

func TestWith(t *testing.T) {
	table, err := fault.Default().With(map[string]fault.Verdict{
		"23": fault.Defect, "22P02": fault.Transient, "P0001": fault.Record, "0A000": fault.Transient,
	})
	if err != nil {
		t.Fatal(err)
	}
	for code, want := range map[string]fault.Verdict{
		"23502": fault.Defect, "22P02": fault.Transient, "22P05": fault.Record, "P0001": fault.Record, "P0002": fault.Transient,
		"23505": fault.Defect, // of another index than the identity
	} {
		if got := table.Classify(code, "other"); got != want {
			t.Errorf("Classify(%s) = %s, want %s", code, got, want)
		}
	}
	if got := table.Classify("23505", "cloud_event_identity_uk"); got != fault.Duplicate {
		t.Errorf("a duplicate became %s", got)
	}
	if table.Row("0A000").AtOnce {
		t.Error("an overridden row is still tried at once")
	}
	if got := fault.Classify("22P02", ""); got != fault.Record {
		t.Errorf("the shipped table changed: %s", got)
	}
	for _, code := range []string{"", "2", "221", "23505", "abcde", "2205 "} {
		if _, err := fault.Default().With(map[string]fault.Verdict{code: fault.Record}); err == nil {
			t.Errorf("With(%q) was accepted", code)
		}
	}
}

func TestParseVerdict(t *testing.T) {
	for _, v := range []fault.Verdict{fault.Transient, fault.Record, fault.Duplicate, fault.Defect} {
		if got, err := fault.ParseVerdict(v.String()); err != nil || got != v {
			t.Errorf("ParseVerdict(%s) = %s, %v", v, got, err)
		}
	}
	for _, s := range []string{"", "Record", "no-partition", "verdict 9"} {
		if _, err := fault.ParseVerdict(s); err == nil {
			t.Errorf("ParseVerdict(%q) was accepted", s)
		}
	}
}

func TestReasonsAreTheClosedListOfTheDecoder(t *testing.T) {
	var names []string
	for _, r := range fault.Reasons() {
		names = append(names, r.Name)
		if r.Why == "" || r.Do == "" {
			t.Errorf("%s explains nothing", r.Name)
		}
	}
	want := event.Reasons()
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("reasons %v, want %v", names, want)
	}
}

func TestExplain(t *testing.T) {
	for _, code := range []string{"23514", "22P05", "57P01", "0A000", "ZZ999", "22", "no-time", "non_canonical_event_type"} {
		e, ok := fault.Explain(code)
		if !ok || e.Code != code || e.Title == "" || e.Why == "" || e.Do == "" || !utf8.ValidString(fmt.Sprint(e)) {
			t.Errorf("Explain(%q) = %+v, %t", code, e, ok)
		}
	}
	for _, code := range []string{"", "2351", "23514 ", "235a4", "no-such-reason", "٢٣٥١٤"} {
		if e, ok := fault.Explain(code); ok {
			t.Errorf("Explain(%q) = %+v", code, e)
		}
	}
}
