package pipeline_test

import (
	"bytes"
	"testing"
	"testing/fstest"

	"github.com/redpanda-data/benthos/v4/public/service"

	"appliance/internal/pipeline"
	"appliance/pipelines"
	"appliance/plugins/cloudevents"
	"appliance/plugins/kafka"
	"appliance/plugins/ledger"
)

// longEnough is a key that an HMAC algorithm takes.
const longEnough = "0123456789abcdef0123456789abcdef"

// plugins are the components of the shipped configuration, and a probe that returns the text it is given.
func plugins() []pipeline.Plugin {
	index := service.NewConfigSpec().Field(service.NewStringField("database"))
	probe := service.NewConfigSpec().Fields(service.NewStringField("text"), service.NewStringMapField("map").Default(map[string]any{}))
	text := func(name string) func(*service.ParsedConfig) (string, error) {
		return func(c *service.ParsedConfig) (string, error) { return c.FieldString(name) }
	}
	return []pipeline.Plugin{
		pipeline.Describe(pipeline.Input, kafka.Name, kafka.Spec(), kafka.Parse),
		pipeline.Describe(pipeline.Processor, cloudevents.Name, cloudevents.Spec(), cloudevents.Parse),
		pipeline.Describe(pipeline.Output, ledger.Name, ledger.Spec(), ledger.Parse),
		pipeline.Describe(pipeline.Output, "postgres_dead_letter_index", index, text("database")),
		pipeline.Describe(pipeline.Processor, "probe", probe, text("text")),
	}
}

func from(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}
}

// shipped compiles the shipped configuration with an environment.
func shipped(t *testing.T, env map[string]string) *pipeline.Config {
	t.Helper()
	source, found := pipeline.Load(pipelines.FS, "")
	if found.HasErrors() {
		t.Fatal(found)
	}
	return good(t, source, pipeline.Inputs{Plugins: plugins(), Lookup: from(env)})
}

// text compiles one file.
func text(t *testing.T, hcl string) *pipeline.Config {
	t.Helper()
	source, found := pipeline.Load(fstest.MapFS{"main.hcl": {Data: []byte(hcl)}}, "")
	if found.HasErrors() {
		t.Fatal(found)
	}
	return good(t, source, pipeline.Inputs{Plugins: plugins()})
}

func good(t *testing.T, source *pipeline.Source, in pipeline.Inputs) *pipeline.Config {
	t.Helper()
	cfg, found := source.Compile(in)
	if cfg == nil {
		var out bytes.Buffer
		_ = source.Print(&out, found)
		t.Fatalf("configuration is refused:\n%s", out.String())
	}
	return cfg
}

// accepted fails unless the engine takes every pipeline's text.
func accepted(t *testing.T, cfg *pipeline.Config) {
	t.Helper()
	env, err := pipeline.ForChecks(plugins())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range cfg.Pipelines {
		if err := env.NewStreamBuilder().SetYAML(p.YAML); err != nil {
			t.Errorf("pipeline %s lints, and the engine refuses it: %v\n%s", p.Name, err, p.YAML)
		}
	}
}

// source is the text of the shipped configuration.
func source(t *testing.T) *pipeline.Source {
	t.Helper()
	s, found := pipeline.Load(pipelines.FS, "")
	if found.HasErrors() {
		t.Fatal(found)
	}
	return s
}
