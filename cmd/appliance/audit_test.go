package main

import (
	"crypto/sha256"
	"strings"
	"testing"

	"appliance/internal/audit"
	"appliance/internal/broker"
	"appliance/internal/event"
	"appliance/internal/pg"
)

func TestAuditSaysWhatIsNotProcessedYet(t *testing.T) {
	b := setup(t)
	b.must(exitOK, "migrate")
	b.must(exitOK, "generate", "-n", "4", "--seed", "1")
	b.in = b.out.String()
	b.must(exitOK, "produce", "-")
	b.must(exitFailure, "audit")
	b.says(&b.out, "NOT YET PROVEN: 4 records are not processed yet")
	b.must(exitOK, "audit", "--allow-pending", "--json")
	b.says(&b.out, `"proven": true`)
	b.must(exitOK, "audit", "--allow-pending")
	b.says(&b.out, "NOTHING IS PROVEN: 0 offsets are processed; 4 pending")
}

// All of nothing is accounted for, whatever happened: a range, a partition or a group that there is not proves nothing.
func TestAuditRefusesToProveNothing(t *testing.T) {
	b := setup(t)
	topic := b.vars["KAFKA_TOPIC"]
	b.must(exitOK, "migrate")
	b.must(exitOK, "audit") // nothing was ever produced, and nothing was asked for
	b.must(exitOK, "generate", "-n", "40", "--seed", "1")
	b.in = b.out.String()
	b.must(exitOK, "produce", "-")
	for _, c := range []struct {
		name string
		args []string
		says string
	}{
		{"a range that ends before it begins", []string{"--from", "10", "--to", "5"}, "--from 10: has to be less than --to 5"},
		{"a range of no offset", []string{"--from", "5", "--to", "5"}, "--from 5: has to be less than --to 5"},
		{"a range beyond the end of every log", []string{"--from", "41"}, "--from 41: no partition has an offset in the range; " + topic + "/0 has [0, "},
		{"an offset below zero", []string{"--from", "-1"}, "--from -1: offsets begin at 0"},
		{"an end at zero", []string{"--to", "0"}, "--to 0: no offset lies before it"},
		{"an end below zero", []string{"--to", "-3"}, "--to -3: no offset lies before it"},
		{"a group that never was", []string{"--group", "nobody", "--allow-pending"}, "--group nobody: it has neither a checkpoint nor a commit"},
		{"a partition that there is not", []string{"--partition", "99"}, "--partition 99: there is none; " + topic + " has 0…1"},
		{"one that there is beside one that there is not", []string{"--partition", "0,99"}, "--partition 99"},
		{"a topic that the pipeline does not read", []string{"--topic", "nope"}, "--topic nope: pipeline persist reads " + topic},
		{"a list of nothing", []string{"--list", "0"}, "--list 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.t = t
			b.must(exitRefused, append([]string{"audit"}, c.args...)...)
			b.says(&b.err, c.says)
			if b.out.Len() > 0 {
				t.Errorf("stdout has %q", b.out.String())
			}
		})
	}
	b.t = t
	b.must(exitFailure, "audit", "--from", "1", "--to", "9999", "--partition", "1", "--topic", topic)
	b.says(&b.out, "NOT YET PROVEN")
}

func TestTheVerdictSaysWhatItIsOf(t *testing.T) {
	for _, c := range []struct {
		name   string
		report audit.Report
		says   string
	}{
		{"all of it", audit.Report{Proven: true, Total: audit.Counts{Offsets: 3, Rows: 3}}, "\nPROVEN: every one of 3 offsets is accounted for"},
		{"pending is allowed", audit.Report{Proven: true, Total: audit.Counts{Offsets: 5, Rows: 3, Pending: 2}}, "\nPROVEN for the 3 processed; 2 pending"},
		{"pending is allowed, and nothing else", audit.Report{Proven: true, Total: audit.Counts{Offsets: 2, Pending: 2}}, "\nNOTHING IS PROVEN: 0 offsets are processed; 2 pending"},
		{"pending is not allowed", audit.Report{Total: audit.Counts{Offsets: 5, Rows: 3, Pending: 2}}, "\nNOT YET PROVEN: 2 records are not processed yet"},
		{"a row is unequal", audit.Report{Total: audit.Counts{Offsets: 3, Rows: 2, Unequal: 1}}, "\nNOT PROVEN: 0 records are missing, 1 have a row or dead letters that are unequal"},
		{
			"duplicates of other bytes are mentioned",
			audit.Report{Proven: true, Total: audit.Counts{Offsets: 3, Rows: 2, OtherBytes: 1}},
			"; 1 duplicates have other bytes than the row of their identity, perhaps another event\n",
		},
		{
			"as is an open transaction",
			audit.Report{Proven: true, Partitions: []audit.Partition{{LogEnd: 9, StableEnd: 7}, {LogEnd: 5, StableEnd: 4}}},
			"\n3 offsets lie behind the beginning of an open transaction",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := verdict(&c.report) + "\n"; !strings.Contains(got, c.says) {
				t.Errorf("%q is not in\n%s", c.says, got)
			}
		})
	}
}

// A row whose content was changed by hand is a row to everybody but --deep.
func TestADeepAuditFindsARowThatWasChanged(t *testing.T) {
	b := setup(t)
	b.must(exitOK, "migrate")
	b.must(exitOK, "generate", "-n", "4", "--seed", "1")
	line, _, _ := strings.Cut(b.out.String(), "\n")
	e, fault := event.DecodeJSON([]byte(line))
	if fault != nil {
		t.Fatal(fault)
	}
	b.in = line
	b.must(exitOK, "produce", "--topic", b.vars["KAFKA_TOPIC"], "-")
	at := b.events(1)[0]
	admin, err := broker.NewAdmin(broker.Cluster{Brokers: []string{b.vars["KAFKA_BOOTSTRAP_SERVERS"]}})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	topics, err := admin.Topics(t.Context(), at.Topic)
	if err != nil {
		t.Fatal(err)
	}
	db, err := pg.Open(t.Context(), pg.Config{URL: b.vars["DATABASE_URL"]})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	id := topics[at.Topic].ID
	claim, err := db.Claim(t.Context(), b.vars["KAFKA_GROUP_ID"], at.Topic, id, at.Partition, "test")
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Write(t.Context(), b.vars["KAFKA_GROUP_ID"], []pg.Row{{
		OccurredAt: e.OccurredAt, Source: e.Source, ID: e.ID, Type: e.Type, Raw: e.Raw, SHA256: sha256.Sum256([]byte("other bytes")),
		TopicID: id, Partition: at.Partition, Offset: at.Offset,
	}}, []pg.Position{{Topic: at.Topic, TopicID: id, Partition: at.Partition, Epoch: claim.Epoch, Next: at.Offset + 1}})
	if err != nil {
		t.Fatal(err)
	}
	b.must(exitOK, "audit", "--group", b.vars["KAFKA_GROUP_ID"])
	b.says(&b.out, "PROVEN: every one of 1 offsets")
	b.must(exitFailure, "audit", "--deep")
	b.says(&b.out, "payload_sha256 is not that of the record")
	b.says(&b.out, "NOT PROVEN: 0 records are missing, 1 have a row or dead letters that are unequal")
	b.must(exitFailure, "audit", "--deep", "--json")
	b.says(&b.out, `"duplicates_other_bytes": 0`)
}
