package interop_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"appliance/internal/event"
	"appliance/internal/testservices"
)

// python returns a command of tools/pyproduce. APPLIANCE_TEST_PYTHON names an interpreter that has its
// requirements, else python3 is asked. Without them the test fails in CI, and is reported as skipped elsewhere: offline,
// nothing can install them.
func python(t *testing.T) func(arguments ...string) *exec.Cmd {
	t.Helper()
	interpreter := cmp.Or(os.Getenv("APPLIANCE_TEST_PYTHON"), "python3")
	script := filepath.Join("..", "..", "tools", "pyproduce", "produce.py")
	command := func(arguments ...string) *exec.Cmd {
		return exec.CommandContext(t.Context(), interpreter, append([]string{script}, arguments...)...)
	}
	if out, err := command("--check").CombinedOutput(); err != nil {
		const hint = "%s cannot produce CloudEvents (%v): pip install -r tools/pyproduce/requirements.txt, or name an interpreter " +
			"that has them in APPLIANCE_TEST_PYTHON\n%s"
		if os.Getenv("CI") != "" {
			t.Fatalf(hint, interpreter, err, out)
		}
		t.Skipf("NOT TESTED: "+hint, interpreter, err, out)
	}
	return command
}

func produce(t *testing.T, command *exec.Cmd, all []sent) {
	t.Helper()
	var lines bytes.Buffer
	for _, s := range all {
		if err := json.NewEncoder(&lines).Encode(s); err != nil {
			t.Fatal(err)
		}
	}
	command.Stdin = &lines
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("produce with Python: %v\n%s", err, out)
	}
}

func TestEventsOfPythonArrive(t *testing.T) {
	python := python(t)
	all := events("core")
	records := exchange(t, all, func(bootstrap, topic string) { produce(t, python(bootstrap, topic), all) })
	keyed(t, all, records)
}

// The library's older interface makes the partition key the record's key and no attribute of a binary event.
func TestBinaryEventsOfPythonsOlderInterfaceArrive(t *testing.T) {
	python := python(t)
	all := slices.DeleteFunc(events("v1"), func(s sent) bool {
		return s.Mode == structured || s.Attributes["id"] == "binary-nothing" || s.Attributes["id"] == "binary-nothing-json"
	})
	delete(all[0].Attributes, "partitionkey")
	exchange(t, all, func(bootstrap, topic string) { produce(t, python(bootstrap, topic), all) })
}

// The same interface gives structured events the payload's content-type, or none, where the binding asks for
// application/cloudevents+json. By the binding they are binary events without attributes: dead letters that say so.
func TestStructuredEventsOfPythonsOlderInterfaceAreDeadLetters(t *testing.T) {
	python := python(t)
	all := slices.DeleteFunc(events("v1"), func(s sent) bool { return s.Mode == binary || s.Data == nil })
	bootstrap := testservices.Kafka(t)
	name := topic(t, bootstrap)
	produce(t, python(bootstrap, name), all)
	for _, r := range read(t, bootstrap, name, len(all)) {
		if _, f := event.DecodeRecord(&r); f == nil || f.Reason != event.ReasonMissingAttribute {
			t.Errorf("%v for %s, %s", f, r.Headers, r.Value)
		}
	}
}
