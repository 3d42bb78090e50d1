package fault

// Entry is an explanation for an operator: of a SQLSTATE, or of a reason of dead letters.
type Entry struct {
	Code    string // as it was asked for
	Title   string // PostgreSQL's name for the SQLSTATE; "dead letter" for a reason
	Verdict Verdict
	Why     string
	Do      string
}

// Explain returns what the shipped table and the closed list of reasons say about code: a SQLSTATE, the two characters of
// a class, or a reason. It returns false for what is none of these.
func Explain(code string) (Entry, bool) {
	for _, r := range Reasons() {
		if r.Name == code {
			return Entry{Code: code, Title: "dead letter", Verdict: Record, Why: r.Why, Do: r.Do}, true
		}
	}
	if len(code) != 2 && len(code) != 5 || !wellFormed(code) {
		return Entry{}, false
	}
	row := Default().Row(code)
	return Entry{Code: code, Title: row.Title, Verdict: row.Verdict, Why: row.Why, Do: row.Do}, true
}

// Reason is one reason why a record is dead-lettered.
type Reason struct {
	Name string
	Why  string // what is wrong with the record
	Do   string // what the operator does about it
}

// Reasons lists all reasons, the closed list that metrics and filters take as labels.
func Reasons() []Reason {
	return []Reason{
		{
			"unknown-mode", "The record's headers say neither binary nor structured mode of the CloudEvents Kafka binding.",
			"Mend the producer's content-type header.",
		},
		{
			"malformed-binary", "A header of a binary-mode record is not what the binding says: repeated, empty or not UTF-8.",
			"Mend the producer; the dead letter has the header's bytes.",
		},
		{
			"malformed-structured", "The value of a structured-mode record is not one JSON object that is a CloudEvent.",
			"Mend the producer; the detail says at which byte.",
		},
		{
			"missing-attribute", "A required attribute is absent: id, source, type or specversion.",
			"Mend the producer; the detail names the attribute.",
		},
		{
			"bad-attribute", "An attribute breaks the rule of its name, its type or its length.",
			"Mend the producer; the detail names the attribute and the rule.",
		},
		{
			"no-time", "The event has no time. CloudEvents allows that; the table's partitions need one, and none is invented.",
			"Let the producer set time.",
		},
		{
			"implausible-time", "The event's time is further in the past or the future than the configuration allows.",
			"Check the producer's clock; for a wanted backfill widen the bounds, then replay.",
		},
		{
			"unstorable-value",
			"The payload is valid JSON that jsonb cannot hold: U+0000, half a surrogate pair, a number or a depth beyond its limits.",
			"Mend the producer; the detail says where in the payload.",
		},
		{
			"outside-partitions", "The event's month is outside the months that the table keeps.",
			"For a wanted backfill create the months, then replay.",
		},
		{
			"processor-failed", "A processor of the pipeline's configuration failed on the record.",
			"Mend the processor; the detail has its error. Then replay.",
		},
		{
			"unconvertible", "The decoder met an error that it does not foresee.",
			"Report it, with the dead letter; replay when it is mended.",
		},
		{
			"unpersistable", "The database refused the record alone; the detail has the SQLSTATE.",
			"Run explain with that SQLSTATE.",
		},
		{
			"non_canonical_event_type", "The bridge takes only the event types of its catalogue, and this is none of them.",
			"Mend the producer, or add the type.",
		},
	}
}
