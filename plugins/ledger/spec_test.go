package ledger

import (
	"errors"
	"strings"
	"testing"
	"time"

	"appliance/internal/fault"
)

func TestTheDefaultsAreThoseOfTheDocumentation(t *testing.T) {
	parsed, err := Spec().ParseYAML("database: events", nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse(parsed)
	if err != nil {
		t.Fatal(err)
	}
	if c.Database != "events" || c.DeadLetters != "" || c.Attempts != 3 || c.RetryDelay != 200*time.Millisecond || c.Lanes != 64 ||
		c.KeepMonths != 13 || c.AheadMonths != 3 || c.Faults.Classify("22P05", "") != fault.Record {
		t.Errorf("got %+v", c)
	}
}

func TestArgumentsThatAreRefusedNameTheirPath(t *testing.T) {
	for _, c := range []struct{ name, yaml, path, reason string }{
		{"no database", `database: ""`, "database", "names no postgres resource"},
		{"no attempt", "attempts: 0", "attempts", "must be 1 to 100, not 0"},
		{"too many lanes", "lanes: 65", "lanes", "must be 1 to 64, not 65"},
		{"a delay that is none", "retry_delay: soon", "retry_delay", "is no duration such as 200ms"},
		{"a delay longer than a rebalance", "retry_delay: 5m", "retry_delay", "must be 0s to 30s, not 5m0s"},
		{"a negative delay", "retry_delay: -1s", "retry_delay", "must be 0s to 30s, not -1s"},
		{"fewer months than none", "ahead_months: -1", "ahead_months", "must be 0 to 240, not -1"},
		{"a verdict nobody knows", "verdicts: { 40001: perhaps }", "verdicts.40001", "not one of"},
		{"a state that is none", "verdicts: { oops: record }", "verdicts", "neither a SQLSTATE nor a class"},
		{"a duplicate otherwise", "verdicts: { 23505: record }", "verdicts", "the identity index decides it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := c.yaml
			if !strings.HasPrefix(text, "database") {
				text += "\ndatabase: events"
			}
			parsed, err := Spec().ParseYAML(text, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Parse(parsed)
			refusal, ok := errors.AsType[*ArgumentError](err)
			if !ok || refusal.Argument() != c.path || !strings.Contains(refusal.Reason, c.reason) {
				t.Errorf("got %v", err)
			}
		})
	}
}
