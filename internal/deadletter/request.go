package deadletter

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"appliance/internal/event"
)

// ErrRequest is wrapped where a request is refused for what it asks, before anything is read.
var ErrRequest = errors.New("refused")

// Request asks for dead letters of a topic: the newest Limit, of one Reason where it is not "", or exactly those that Refs
// name. It is the same for a listing, a dry run and a replay.
type Request struct {
	Limit  int
	Reason string
	Refs   []string
}

// NewRequest reads a request as it was typed; limit and refs are nil where they are absent. Exactly one of them is needed:
// no request is unbounded. What asks for more than maxRecords is refused, never clamped: who gets 200 for 500 believes
// that 500 came. It errs wrapping ErrRequest.
func NewRequest(limit, refs *string, reason string, maxRecords int) (Request, error) {
	q := Request{Reason: reason}
	var err error
	switch {
	case limit == nil && refs == nil:
		return q, refuse("say how many records with a limit of 1 to %d, or name them by their refs", maxRecords)
	case limit != nil && refs != nil:
		return q, refuse("a limit and refs exclude each other")
	case refs != nil && reason != "":
		return q, refuse("refs name exactly which records; a reason goes with a limit")
	case reason != "" && !slices.Contains(event.Reasons(), reason):
		return q, refuse("there is no reason %q; the reasons are %s", reason, strings.Join(event.Reasons(), ", "))
	case refs != nil:
		q.Refs, err = parseRefs(*refs, maxRecords)
		q.Limit = len(q.Refs)
	default:
		q.Limit, err = parseLimit(*limit, maxRecords)
	}
	return q, err
}

// parseLimit takes plain decimal digits and nothing that merely resembles a number.
func parseLimit(s string, maxRecords int) (int, error) {
	n, ok := parseNumber(s, 32)
	if !ok || n < 1 {
		return 0, refuse("limit %q is not a number from 1 to %d", s, maxRecords)
	}
	if n > int64(maxRecords) {
		return 0, refuse("limit %d is more than the %d records that one request may have, and is not clamped", n, maxRecords)
	}
	return int(n), nil
}

// parseRefs takes refs with commas between them. One that is named twice counts once.
func parseRefs(s string, maxRecords int) ([]string, error) {
	var refs []string
	for ref := range strings.SplitSeq(s, ",") {
		if _, err := ParseRef(ref); err != nil {
			return nil, refuse("%w", err)
		}
		if !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
		if len(refs) > maxRecords {
			return nil, refuse("more refs than the %d records that one request may have", maxRecords)
		}
	}
	return refs, nil
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrRequest}, args...)...)
}

// FetchLimit returns how many offsets are read at the end of each partition. What a filter passes over counts against the
// read and not against the answer, so that a filtered request reads as far as one may: with a bound of its own limit it
// would answer that there are none where there are thousands behind newer ones of another reason.
func (q Request) FetchLimit(maxRecords int) int {
	if q.Reason != "" || q.Refs != nil {
		return maxRecords
	}
	return q.Limit
}

// Widen tells whether a read of fetched offsets is repeated with maxRecords: copies, parts and offsets without a record
// made less of it than was asked for. Never after a timeout: a longer read would not end in time either.
func (q Request) Widen(p Page, fetched, maxRecords int) bool {
	return fetched < maxRecords && !p.Newest && !p.TimedOut
}
