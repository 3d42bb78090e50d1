package pipeline_test

import (
	"os"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"

	"appliance/internal/pipeline"
	"appliance/pipelines"
	"appliance/plugins/cloudevents"
	"appliance/plugins/kafka"
	"appliance/plugins/ledger"
)

func plugins() []pipeline.Plugin {
	index := service.NewConfigSpec().Field(service.NewStringField("database"))
	return []pipeline.Plugin{
		pipeline.Describe(pipeline.Input, kafka.Name, kafka.Spec(), kafka.Parse),
		pipeline.Describe(pipeline.Processor, cloudevents.Name, cloudevents.Spec(), cloudevents.Parse),
		pipeline.Describe(pipeline.Output, ledger.Name, ledger.Spec(), ledger.Parse),
		pipeline.Describe(pipeline.Output, "postgres_dead_letter_index", index, func(c *service.ParsedConfig) (string, error) { return c.FieldString("database") }),
	}
}

func TestSmoke(t *testing.T) {
	s, diags := pipeline.Load(pipelines.FS, "")
	cfg, more := s.Compile(pipeline.Inputs{Plugins: plugins(), Lookup: func(n string) (string, bool) {
		v, ok := map[string]string{"ADMIN_AUTH_SECRET": "0123456789012345678901234567890123456789"}[n]
		return v, ok
	}})
	_ = s.Print(os.Stdout, append(diags, more...))
	if cfg == nil {
		t.Fatal("no config")
	}
	for _, p := range cfg.Pipelines {
		t.Logf("%s\n%+v", p.Redacted, p.Kafka)
	}
	t.Log(string(cfg.Effective()))
}
