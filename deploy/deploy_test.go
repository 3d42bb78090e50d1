package deploy

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"appliance/internal/meter"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// shippedVariables are the names that the shipped configuration reads, and
// their defaults.
func shippedVariables(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../pipelines/*.hcl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no pipelines: %v", err)
	}
	found := map[string]string{}
	for _, file := range files {
		for _, m := range regexp.MustCompile(`env\("([A-Z0-9_]+)"(?:, "([^"]*)")?`).FindAllStringSubmatch(read(t, file), -1) {
			if found[m[1]] == "" {
				found[m[1]] = m[2]
			}
		}
	}
	return found
}

// exampleVariables are the lines of env.example, set or commented out.
func exampleVariables(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^#?([A-Z0-9_]+)=(.*)$`).FindAllStringSubmatch(read(t, "env.example"), -1) {
		if _, twice := found[m[1]]; twice {
			t.Errorf("env.example has %s twice", m[1])
		}
		found[m[1]] = m[2]
	}
	return found
}

func TestTheExampleListsEachVariableOfTheShippedConfigurationWithItsDefault(t *testing.T) {
	shipped, example := shippedVariables(t), exampleVariables(t)
	for name, value := range shipped {
		shown, ok := example[name]
		if !ok {
			t.Errorf("env.example lacks %s", name)
		} else if shown != value {
			t.Errorf("env.example says %s=%s, the configuration %q", name, shown, value)
		}
	}
	for name := range example {
		if _, ok := shipped[name]; !ok {
			t.Errorf("env.example has %s, which nothing reads", name)
		}
	}
}

// rules is a file of alerts as Prometheus reads it.
type rules struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr, For    string
			Labels, Annotations map[string]string
		}
	}
}

func TestEachAlertAsksForMetricsThatExistWithTheirLabels(t *testing.T) {
	var file rules
	decoder := yaml.NewDecoder(strings.NewReader(read(t, "prometheus/alerts.yml")))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	// _count is of a histogram; these prefixes are the program's metrics.
	metric := regexp.MustCompile(`\b(?:consume|health|dlq|ingest)_[a-z_]+`)
	for _, group := range file.Groups {
		for _, r := range group.Rules {
			names := metric.FindAllString(r.Expr, -1)
			if len(names) == 0 {
				t.Errorf("%s asks for no metric", r.Alert)
			}
			for _, name := range names {
				definition, ok := define(name)
				if !ok {
					t.Errorf("%s asks for %s, which is not exported", r.Alert, name)
				}
				for _, by := range regexp.MustCompile(`by \(([a-z, ]+)\)`).FindAllStringSubmatch(r.Expr, -1) {
					for label := range strings.SplitSeq(by[1], ", ") {
						if !slices.Contains(definition.Labels, label) {
							t.Errorf("%s groups %s by %s, which it lacks", r.Alert, name, label)
						}
					}
				}
			}
			if s := r.Labels["severity"]; s != "page" && s != "ticket" {
				t.Errorf("%s has severity %q", r.Alert, s)
			}
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s says too little", r.Alert)
			}
		}
	}
}

func define(name string) (meter.Definition, bool) {
	for _, d := range meter.Definitions() {
		if d.Name == name || d.Kind == meter.Histogram && strings.TrimSuffix(name, "_count") == d.Name {
			return d, true
		}
	}
	return meter.Definition{}, false
}

// compose is as much of a compose file as is checked.
type compose struct {
	Services map[string]struct {
		Image       string
		Environment map[string]string
		DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
		Ports       []string
	}
	Volumes map[string]any
}

func TestComposeGivesTheApplianceWhatItReadsAndOpensNothingToTheNetwork(t *testing.T) {
	var file compose
	if err := yaml.Unmarshal([]byte(read(t, "compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	known := shippedVariables(t)
	for name := range file.Services["appliance"].Environment {
		if _, ok := known[name]; !ok {
			t.Errorf("compose sets %s, which nothing reads", name)
		}
	}
	for name, service := range file.Services {
		for on := range service.DependsOn {
			if _, ok := file.Services[on]; !ok {
				t.Errorf("%s depends on %s, which is none", name, on)
			}
		}
		for _, port := range service.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s publishes %s beyond this machine", name, port)
			}
		}
	}
}

func TestTheImageIsBuiltWithTheGoOfTheModule(t *testing.T) {
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../go.mod"))
	if version == nil || !strings.Contains(read(t, "Dockerfile"), "FROM golang:"+version[1]+"-") {
		t.Errorf("go.mod says %v", version)
	}
}

func TestTheUnitLintsBeforeItStartsAndWaitsForTheDrain(t *testing.T) {
	unit := read(t, "systemd/appliance.service")
	for _, line := range []string{
		"ExecStartPre=/usr/bin/appliance lint", "ExecStart=/usr/bin/appliance run", "KillSignal=SIGTERM",
		"TimeoutStopSec=50s", // more than the 40 s of a shutdown
		"RestartPreventExitStatus=2", "DynamicUser=yes", "ProtectSystem=strict", "NoNewPrivileges=yes", "CapabilityBoundingSet=",
	} {
		if !slices.Contains(strings.Split(unit, "\n"), line) {
			t.Errorf("the unit lacks %s", line)
		}
	}
}

// Where systemd is there it has its say too; the texts above are checked
// everywhere.
func TestSystemdAcceptsTheUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not on this machine")
		return
	}
	// It wants the binary to exist.
	unit := filepath.Join(t.TempDir(), "appliance.service")
	text := strings.ReplaceAll(read(t, "systemd/appliance.service"), "/usr/bin/appliance", "/bin/true")
	if err := os.WriteFile(unit, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command(analyze, "verify", "--man=no", unit)
	cmd.Stdout, cmd.Stderr = io.Discard, &said
	if err := cmd.Run(); err != nil || strings.Contains(said.String(), "appliance.service") {
		t.Errorf("%v: %s", err, said.String())
	}
}
