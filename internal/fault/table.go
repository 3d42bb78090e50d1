package fault

import (
	"fmt"
	"strings"
)

// Row is one line of the table: what a SQLSTATE, or a whole class of them, means for the records that met it.
type Row struct {
	Code    string // five characters, or the two of a class; "" is the line for everything else
	Title   string // PostgreSQL's name for it
	Verdict Verdict
	AtOnce  bool   // transient, and worth one more attempt without a delay
	Why     string // why this verdict
	Do      string // what the operator does about it
}

// Table is the whole decision. A code's own row wins over its class's, and that over the row for everything else.
type Table struct {
	Rows []Row
	// Identity tells whether a unique violation of this constraint means that the event is stored already.
	Identity func(constraint string) bool
}

// Classify returns the verdict on an error with this SQLSTATE and constraint, "" where the server named none. An error
// without a SQLSTATE did not come from the server: the connection failed, and nothing is known about any record.
func (t Table) Classify(code, constraint string) Verdict {
	row := t.Row(code)
	switch {
	case row.Code == uniqueViolation && row.Verdict == Duplicate && !t.Identity(constraint):
		return t.Row(row.Code[:2]).Verdict
	case row.Verdict == NoPartition && constraint != "":
		return t.Row(row.Code[:2]).Verdict
	default:
		return row.Verdict
	}
}

// Row returns the line that decides about code.
func (t Table) Row(code string) Row {
	best, found := Row{}, false
	for _, r := range t.Rows {
		if covers(r.Code, code) && (!found || len(r.Code) > len(best.Code)) {
			best, found = r, true
		}
	}
	return best
}

// covers tells whether a row of that code decides about a SQLSTATE: it is its own, its class, or everything.
func covers(row, code string) bool {
	return row == "" || row == code || len(row) == 2 && len(code) == 5 && strings.HasPrefix(code, row)
}

// With returns the table with verdicts changed by an operator, keyed by SQLSTATE or class. It errs on a key that is
// neither, and on 23505: what a duplicate is, the identity index says.
func (t Table) With(verdicts map[string]Verdict) (Table, error) {
	rows := append([]Row(nil), t.Rows...)
	for code, verdict := range verdicts {
		if len(code) != 2 && len(code) != 5 || !wellFormed(code) {
			return Table{}, fmt.Errorf("override verdict of %q: neither a SQLSTATE nor a class of them", code)
		}
		if code == uniqueViolation {
			return Table{}, fmt.Errorf("override verdict of %s: the identity index decides it", code)
		}
		row := t.Row(code)
		row.Code, row.Verdict, row.AtOnce, row.Why = code, verdict, false, "The configuration says so."
		rows = append(dropCode(rows, code), row)
	}
	return Table{Rows: rows, Identity: t.Identity}, nil
}

func dropCode(rows []Row, code string) []Row {
	var out []Row
	for _, r := range rows {
		if r.Code != code {
			out = append(out, r)
		}
	}
	return out
}

// wellFormed tells whether s is made of the characters of a SQLSTATE.
func wellFormed(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return s != ""
}

const uniqueViolation = "23505"
