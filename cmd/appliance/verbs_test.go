package main

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"appliance/internal/event"
)

func TestGenerateWritesEventsAndNothingElse(t *testing.T) {
	b := offline(t)
	b.visible = true
	b.must(exitOK, "generate", "-n", "5", "--seed", "9", "--type", "com.example.order.placed.v1")
	lines := strings.Split(strings.TrimSuffix(b.out.String(), "\n"), "\n")
	if len(lines) != 5 || b.err.Len() != 0 {
		t.Fatalf("%d lines, stderr %q", len(lines), b.err.String())
	}
	for _, line := range lines {
		if e, fault := event.DecodeJSON([]byte(line)); fault != nil || e.Type != "com.example.order.placed.v1" {
			t.Errorf("%v %v: %s", e, fault, line)
		}
	}
}

func TestVersionNamesTheSchema(t *testing.T) {
	b := offline(t)
	b.must(exitOK, "version", "--json")
	var v versions
	if err := json.Unmarshal(b.out.Bytes(), &v); err != nil || v.Schema < 1 || v.Version == "" || !strings.HasPrefix(v.Go, "go1.") {
		t.Errorf("%+v %v", v, err)
	}
	b.must(exitOK, "version")
	b.says(&b.out, "appliance ")
}

func TestWhatIsWrongIsRefusedBeforeAnythingIsAsked(t *testing.T) {
	empty := t.TempDir()
	for _, c := range []struct {
		name, says string
		args       []string
	}{
		{"a share that is none", "share from 0 to 1", []string{"generate", "--poison", "2"}},
		{"a type that nobody makes", "com.example.page.viewed.v1", []string{"generate", "--type", "x"}},
		{"a file that is not there", "no such file", []string{"produce", "nowhere.jsonl"}},
		{"a directory in place of a file", "is a directory", []string{"produce", empty}},
		{"no file", "FILE, or - for stdin", []string{"produce"}},
		{"a mode that is none", "structured or binary", []string{"produce", "--mode", "x", "-"}},
		{"raw lines in binary mode", "has no binary mode", []string{"produce", "--raw", "--mode", "binary", "-"}},
		{"a rate below zero", "--rate", []string{"produce", "--rate", "-1", "-"}},
		{"a cluster that the configuration lacks", `no kafka "x"`, []string{"produce", "--cluster", "x", "-"}},
		{"a configuration that is not there", "open configuration", []string{"migrate", filepath.Join(empty, "x")}},
		{"a configuration of nothing", "Nothing to run", []string{"topics", "ensure", empty}},
		{"two configurations", "one directory at most", []string{"audit", "a", "b"}},
		{"a pipeline that the configuration lacks", `no pipeline "x"`, []string{"audit", "--pipeline", "x"}},
		{"a measurement of nothing", "at least 1", []string{"bench", "persist", "--events", "0"}},
		{"a flag that is none", "--help", []string{"version", "--x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := offline(t)
			b.must(exitRefused, c.args...)
			b.says(&b.err, c.says)
			if b.out.Len() > 0 {
				t.Errorf("stdout has %q", b.out.String())
			}
		})
	}
}

func TestAServiceThatDoesNotAnswerHasItsExitCode(t *testing.T) {
	for _, args := range [][]string{
		{"produce", "-"}, {"topics", "ensure"}, {"migrate"}, {"audit"}, {"bench", "persist"},
	} {
		t.Run(args[0], func(t *testing.T) {
			offline(t).must(exitUnreachable, args...)
		})
	}
}

func TestMigrateIsDoneOnce(t *testing.T) {
	b := setup(t)
	b.must(exitOK, "migrate", "--json")
	var done []migratedDatabase
	if err := json.Unmarshal(b.out.Bytes(), &done); err != nil || len(done) != 1 || done[0].From != 0 || done[0].Partitions != 17 {
		t.Errorf("%+v %v", done, err)
	}
	b.must(exitOK, "migrate")
	b.says(&b.out, "nothing to migrate; 0 partitions made")
}

// A database that is not there is as far away as a server that is not there; one that refuses was reached.
func TestADatabaseThatIsNotThereIsUnreachable(t *testing.T) {
	b := setup(t)
	there, err := url.Parse(b.vars["DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	absent := *there
	absent.Path = "/absent_database"
	b.vars["DATABASE_URL"] = absent.String()
	for _, verb := range []string{"migrate", "audit"} {
		b.must(exitUnreachable, verb)
		b.says(&b.err, `database "absent_database" does not exist`)
	}
	refuses := *there
	refuses.User = url.UserPassword("absent_role", "x")
	b.vars["DATABASE_URL"] = refuses.String()
	b.must(exitFailure, "migrate")
}

func TestTopicsEnsureChangesNothingThatIsThere(t *testing.T) {
	b := setup(t)
	b.must(exitOK, "topics", "ensure")
	b.says(&b.out, "exists   "+b.vars["KAFKA_TOPIC"]+" (2 partitions; the configuration says 12, and nothing was changed)")
	b.vars["KAFKA_TOPIC"] += ".new"
	b.must(exitOK, "topics", "ensure")
	b.says(&b.out, "created  "+b.vars["KAFKA_TOPIC"]+" (12 partitions)")
	b.removeTopic(b.vars["KAFKA_TOPIC"])
}

func TestProduceStopsAtTheFirstLineThatIsNoEvent(t *testing.T) {
	b := setup(t)
	b.must(exitOK, "generate", "-n", "3", "--seed", "1")
	lines := b.out.String()
	file := filepath.Join(t.TempDir(), "events.jsonl")
	if err := os.WriteFile(file, []byte(lines+"\n{\"id\":1}\n"+lines), 0o600); err != nil {
		t.Fatal(err)
	}
	b.must(exitRefused, "produce", file)
	b.says(&b.err, file+":5: missing-attribute: specversion")
	b.says(&b.out, "produced 3 events onto "+b.vars["KAFKA_TOPIC"])

	b.must(exitRefused, "produce", "--keep-going", "--json", file)
	b.says(&b.err, file+":5: missing-attribute")
	b.says(&b.err, "1 of 7 lines")
	b.says(&b.out, `"produced": 6`)
	b.says(&b.out, `"refused": 1`)

	b.must(exitOK, "produce", "--raw", "--json", file)
	b.says(&b.out, `"produced": 7`)
}

func TestProduceDrawsProgressOnATerminalOnly(t *testing.T) {
	b := setup(t)
	b.must(exitOK, "generate", "-n", "3", "--seed", "1")
	b.in = b.out.String()
	b.must(exitOK, "produce", "--mode", "binary", "--rate", "20", "-")
	if b.err.Len() > 0 {
		t.Errorf("stderr has %q", b.err.String())
	}
	b.visible = true
	b.must(exitOK, "produce", "-")
	b.says(&b.err, "produce  ")
	if strings.Contains(b.out.String(), "\r") {
		t.Errorf("stdout has %q", b.out.String())
	}
}

func TestProduceSaysThatTheTopicIsAbsent(t *testing.T) {
	b := setup(t)
	b.must(exitFailure, "produce", "--topic", "absent", "-")
	b.says(&b.err, "topic absent does not exist")
}

// The whole measurement, with this binary as the program.
func TestBenchPersistLeavesNothingBehind(t *testing.T) {
	b := setup(t)
	for name, value := range b.vars {
		t.Setenv(name, value)
	}
	t.Setenv(runProgram, "1")
	before := b.leftovers("appliance_bench_")
	b.must(exitOK, "bench", "persist", "--events", "2000", "--rounds", "1", "--json")
	var r map[string]any
	if err := json.Unmarshal(b.out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"seconds", "events_per_second", "floor_events_per_second", "ratio", "peak_rss_bytes"} {
		if v, ok := r[name].(float64); !ok || v <= 0 {
			t.Errorf("%s is %v", name, r[name])
		}
	}
	if r["lost"] != 0.0 || r["duplicates"] != 0.0 || r["bench"] != "persist" || r["events"] != 2000.0 {
		t.Errorf("%v", r)
	}
	for _, name := range b.leftovers("appliance_bench_") {
		if !slices.Contains(before, name) {
			t.Errorf("left behind: %s", name)
		}
	}
}
