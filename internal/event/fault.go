package event

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The closed list of reasons: why a record is a dead letter and not a row. They are wire names: dashboards, filters and
// the index of dead letters hold them.
const (
	ReasonUnknownMode           = "unknown-mode"             // the content-type names a format that is not read here
	ReasonMalformedBinary       = "malformed-binary"         // a JSON media type, and a value that is not JSON
	ReasonMalformedStructured   = "malformed-structured"     // a value that is not one JSON object, or contradicts itself
	ReasonMissingAttribute      = "missing-attribute"        // a required attribute is absent
	ReasonBadAttribute          = "bad-attribute"            // an attribute breaks a rule
	ReasonNoTime                = "no-time"                  // a valid event without a time, which rows are kept by
	ReasonImplausibleTime       = "implausible-time"         // a time too far in the past or in the future
	ReasonUnstorableValue       = "unstorable-value"         // JSON that PostgreSQL's jsonb cannot hold
	ReasonOutsidePartitions     = "outside-partitions"       // a time in a month that has no partition
	ReasonProcessorFailed       = "processor-failed"         // a processor of the pipeline marked the message as failed
	ReasonUnconvertible         = "unconvertible"            // the decoder itself failed
	ReasonUnpersistable         = "unpersistable"            // the database refused the row
	ReasonNonCanonicalEventType = "non_canonical_event_type" // a type that the serving bridge doesn't know
)

// Reasons returns the closed list, in the order in which it is documented.
func Reasons() []string {
	return []string{
		ReasonUnknownMode, ReasonMalformedBinary, ReasonMalformedStructured, ReasonMissingAttribute, ReasonBadAttribute,
		ReasonNoTime, ReasonImplausibleTime, ReasonUnstorableValue, ReasonOutsidePartitions, ReasonProcessorFailed,
		ReasonUnconvertible, ReasonUnpersistable, ReasonNonCanonicalEventType,
	}
}

// MaxDetail is the most bytes that a Fault's detail has: enough for a sentence, and never a copy of the payload.
const MaxDetail = 1024

// maxNamed is the most bytes of a received name that a detail repeats, so that the sentence behind it still fits.
const maxNamed = 128

// NewFault returns a Fault whose attribute and detail are valid UTF-8, without U+0000 and within MaxDetail bytes,
// whatever they were.
func NewFault(reason, attribute, detail string) *Fault {
	return &Fault{Reason: reason, Attribute: Truncate(attribute, maxNamed), Detail: Truncate(detail, MaxDetail)}
}

func faultf(reason, attribute, format string, args ...any) *Fault {
	return NewFault(reason, attribute, fmt.Sprintf(format, args...))
}

func missing(name string) *Fault {
	return NewFault(ReasonMissingAttribute, name, name+": a required attribute is absent")
}

func badAttribute(name, rule string) *Fault {
	return NewFault(ReasonBadAttribute, name, Truncate(name, maxNamed)+": "+rule)
}

func repeated(name string) *Fault { return badAttribute(name, "occurs more than once") }

// Truncate returns s as text that can be stored and shown anywhere: at most limit bytes, cut between two characters,
// with U+FFFD in the place of bytes that are not UTF-8 and of U+0000, which PostgreSQL's text refuses.
func Truncate(s string, limit int) string {
	limit = max(limit, 0)
	if len(s)/4 > limit { // no need to clean what is cut anyway: no character is longer
		s = s[:4*limit+4]
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}
