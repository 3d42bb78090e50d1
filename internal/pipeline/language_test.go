package pipeline_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"appliance/internal/pipeline"
)

func TestDurationsAreReadInEverySpelling(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"250ms": 250 * time.Millisecond, "250 millis": 250 * time.Millisecond, "250milliseconds": 250 * time.Millisecond,
		"5 seconds": 5 * time.Second, "1 second": time.Second, " 30 s ": 30 * time.Second, "10 minutes": 10 * time.Minute,
		"1h30m": 90 * time.Minute, "1h 30m": 90 * time.Minute, "1.5 hours": 90 * time.Minute, "7 days": 168 * time.Hour, "7d": 168 * time.Hour,
		"0": 0, "0s": 0, "3 micros": 3 * time.Microsecond, "3µs": 3 * time.Microsecond, "9 NANOS": 9,
	} {
		if got, err := pipeline.ParseDuration(text); err != nil || got != want {
			t.Errorf("%q is %v, %v; not %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", " ", "5", "-5s", "five seconds", "5 weeks", "5s5", "1e3s", "5,5s", "300 000 000 h", "99999999999h", "200y", "292 years", "150000d 150000d"} {
		if got, err := pipeline.ParseDuration(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

// The shipped configuration compiles, nothing is found in it, and the engine takes it.
func TestTheShippedConfigurationIsGood(t *testing.T) {
	cfg, found := source(t).Compile(pipeline.Inputs{Plugins: plugins(), Lookup: from(map[string]string{"ADMIN_AUTH_SECRET": longEnough})})
	if len(found) != 0 {
		t.Fatalf("found: %v", found)
	}
	accepted(t, cfg)
	p := persist(cfg)
	if len(p.DeadLetters) != 1 || p.DeadLetters[0] != "main" || len(p.Databases) != 1 || p.Databases[0] != "events" || p.Kafka.Cluster != "main" {
		t.Errorf("persist uses %v", p.Uses)
	}
	for i, line := range strings.Split(strings.TrimSuffix(p.YAML, "\n"), "\n") {
		if strings.Contains(line, `"window"`) && p.Line(i+1).Start.Line == p.Range.Start.Line {
			t.Errorf("line %d, %s, comes from %v", i+1, line, p.Line(i+1))
		}
	}
}

// Without its key the shipped configuration is refused, and the finding names the field and the variable.
func TestAnAdminKeyIsMandatory(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"admin.auth.secret is mandatory":      {},
		"admin.auth.secret has 31 characters": {"ADMIN_AUTH_SECRET": longEnough[1:]},
		"admin.auth.public_key is mandatory":  {"ADMIN_AUTH_SECRET": longEnough, "ADMIN_AUTH_ALGORITHM": "RS256"},
	} {
		cfg, found := source(t).Compile(pipeline.Inputs{Plugins: plugins(), Lookup: from(env)})
		if cfg != nil || !strings.Contains(found.Error(), name) {
			t.Errorf("want %q, found %v", name, found)
		}
	}
}

// No secret is in anything that is shown, though the engine's own text has it in clear.
func TestSecretsAreShownNowhere(t *testing.T) {
	const planted = `pl"an$ted\ ü-secret`
	dir := fstest.MapFS{
		"key.pem": {Data: []byte(planted)},
		"main.hcl": {Data: []byte(`
postgres "events" {
  url      = "postgres://me:pl%61nted-password@localhost/db"
  password = env("PLANTED")
}
kafka "main" {
  brokers = ["localhost:9092"]
  sasl {
    username = "me"
    password = file("key.pem")
  }
}
locals {
  token = "Bearer ${secret(env("PLANTED"))}"
}
pipeline "a" {
  input "http_client" {
    url     = "http://localhost/?password=${postgres.events.password}"
    headers = { Authorization = local.token, (secret("planted-key")) = "x" }
    oauth {
      consumer_secret = env("PLANTED")
    }
  }
  processor "mapping" {
    value = "root = \"${secret("planted-in-mapping")}\""
  }
  output "drop" {}
}
`)},
	}
	s, found := pipeline.Load(dir, "")
	cfg, more := s.Compile(pipeline.Inputs{Plugins: plugins(), Lookup: from(map[string]string{"PLANTED": planted})})
	if cfg == nil {
		t.Fatal(found, more)
	}
	if yaml := cfg.Pipelines[0].YAML; strings.Count(yaml, `ted\\ ü-secret`) != 3 || !strings.Contains(yaml, "planted-in-mapping") {
		t.Errorf("the engine needs the secrets:\n%s", yaml)
	}
	if cfg.Postgres["events"].Password != planted || cfg.Kafka["main"].SASL.Password != planted {
		t.Error("the drivers need the secrets")
	}
	var out bytes.Buffer
	_ = s.Print(&out, more)
	_ = s.PrintJSON(&out, more)
	out.WriteString(cfg.Pipelines[0].Redacted)
	out.Write(cfg.Effective())
	out.WriteString(cfg.Secrets.Hide("login " + planted + " failed for postgres://me:pl%61nted-password@localhost/db, planted-password"))
	for _, piece := range []string{"planted", "ted\\", "ü-secret", "pl%61nted"} {
		if strings.Contains(out.String(), piece) {
			t.Errorf("%q is shown in\n%s", piece, out.String())
		}
	}
	if strings.Count(out.String(), "(secret)") < 8 {
		t.Errorf("secrets are left out rather than hidden:\n%s", out.String())
	}
}

// The hash names what is in effect and can be seen: it changes with a value, and neither with a secret nor with a comment.
func TestTheHashIsOfWhatIsShown(t *testing.T) {
	base := map[string]string{"ADMIN_AUTH_SECRET": longEnough}
	one, other := shipped(t, base), shipped(t, map[string]string{"ADMIN_AUTH_SECRET": longEnough + "other"})
	if one.Hash != other.Hash || len(one.Hash) != 64 {
		t.Errorf("hashes are %s and %s", one.Hash, other.Hash)
	}
	changed := shipped(t, map[string]string{"ADMIN_AUTH_SECRET": longEnough, "CONSUMER_BATCH_SIZE": "501"})
	if changed.Hash == one.Hash {
		t.Error("another batch size has the same hash")
	}
}

func TestVariablesComeFromOutside(t *testing.T) {
	dir := fstest.MapFS{"main.hcl": {Data: []byte(`
variable "limit" {
  type = number
}
variable "names" {
  type    = list(string)
  default = ["a"]
}
pipeline "a" {
  input "generate" {
    mapping = "root = ${jsonencode(var.names)}"
    count   = var.limit
  }
  output "drop" {}
}
`)}}
	for name, in := range map[string]pipeline.Inputs{
		"as an input":          {Variables: map[string]string{"limit": "7", "names": `["b", "c"]`}},
		"from the environment": {Lookup: from(map[string]string{"APPLIANCE_VAR_limit": "7", "APPLIANCE_VAR_names": `["b", "c"]`})},
	} {
		in.Plugins = plugins()
		s, _ := pipeline.Load(dir, "")
		if cfg := good(t, s, in); !strings.Contains(cfg.Pipelines[0].YAML, `"count": 7`) || !strings.Contains(cfg.Pipelines[0].YAML, `[\"b\",\"c\"]`) {
			t.Errorf("%s: %s", name, cfg.Pipelines[0].YAML)
		}
	}
	for name, value := range map[string]string{"limt": "7", "names": "[planted", "limit": "planted"} {
		s, _ := pipeline.Load(dir, "")
		cfg, found := s.Compile(pipeline.Inputs{Plugins: plugins(), Variables: map[string]string{name: value}})
		var out bytes.Buffer
		_ = s.Print(&out, found)
		if cfg != nil || strings.Contains(out.String(), "planted") || !strings.Contains(out.String(), name) {
			t.Errorf("%s = %s: %s", name, value, out.String())
		}
	}
}

// An output that bounds its writes gets as many as the input has lanes, unless it says otherwise.
func TestWritesInFlightAreTheLanes(t *testing.T) {
	const head = `
kafka "main" { brokers = ["localhost:9092"] }
pipeline "a" {
  input "kafka" {
    cluster = kafka.main
    topics  = ["t"]
    group   = "g"
    lanes   = 3
  }
`
	for output, want := range map[string]string{
		"output \"http_client\" {\n url = \"http://localhost\"\n }\n}":                     `"max_in_flight": 3`,
		"output \"http_client\" {\n url = \"http://localhost\"\n max_in_flight = 9\n }\n}": `"max_in_flight": 9`,
	} {
		cfg := text(t, head+output)
		accepted(t, cfg)
		if yaml := cfg.Pipelines[0].YAML; strings.Count(yaml, "max_in_flight") != 1 || !strings.Contains(yaml, want) {
			t.Errorf("want %s in\n%s", want, yaml)
		}
	}
}

// The catalogue explains each code once, and every golden finding has one of its codes.
func TestEveryCodeIsExplained(t *testing.T) {
	seen := map[pipeline.Code]bool{}
	for _, x := range pipeline.Explanations() {
		if seen[x.Code] || x.Title == "" || x.Meaning == "" || x.Action == "" {
			t.Errorf("%+v", x)
		}
		seen[x.Code] = true
	}
	for _, code := range goldenCodes(t) {
		if !seen[code] {
			t.Errorf("%s is found and not explained", code)
		}
	}
}
