package pipeline_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/zclconf/go-cty/cty"
	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"

	"appliance/internal/pipeline"
)

// What lints, the engine takes: any arrangement of components that compiles is accepted by the same environment.
func TestWhatLintsTheEngineTakes(t *testing.T) {
	compile := pipeline.Repeated(plugins())
	env, err := pipeline.ForChecks(plugins())
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(r *rapid.T) {
		var out strings.Builder
		out.WriteString("pipeline \"p\" {\n")
		out.WriteString(rapid.SampledFrom([]string{
			"input \"stdin\" {}\n", "input \"generate\" { mapping = \"root = 1\" }\n",
			"input \"broker\" {\n input \"stdin\" {}\n input \"stdin\" {\n label = \"b\"\n }\n}\n",
			"input = { stdin = { scanner = { lines = {} } } }\n",
		}).Draw(r, "input"))
		for range rapid.IntRange(0, 3).Draw(r, "processors") {
			out.WriteString(processor(r, 0))
		}
		out.WriteString(rapid.SampledFrom([]string{
			"output \"drop\" {}\n", "output \"reject\" { value = \"no\" }\n",
			"output \"reject_errored\" {\n output \"drop\" {}\n}\n",
			"output \"fallback\" {\n output \"stdout\" {}\n output \"drop\" {}\n}\n",
			"output \"switch\" {\n case {\n check = \"true\"\n output \"drop\" {}\n }\n}\n",
			"output \"broker\" {\n output \"drop\" {}\n batching {\n count = 2\n processor \"noop\" {}\n }\n}\n",
		}).Draw(r, "output"))
		out.WriteString("}\n")
		cfg := compiled(r, compile, out.String())
		if err := env.NewStreamBuilder().SetYAML(cfg.Pipelines[0].YAML); err != nil {
			r.Fatalf("lints, and the engine refuses it: %v\n%s\n%s", err, out.String(), cfg.Pipelines[0].YAML)
		}
	})
}

// processor draws a processor, at times with others inside.
func processor(r *rapid.T, depth int) string {
	kinds := []string{
		"processor \"noop\" {}\n",
		"processor \"mapping\" {\n value = <<-EOT\n  root = this\n  root.a = \"$${x}\"\n EOT\n}\n",
		"processor \"log\" {\n message = \"$${! content() } ${1 + 1}\"\n fields = { a = 1, \"b.c\" = \"$x\" }\n}\n",
		"processor = [{ mapping = \"root = 1\" }]\n",
	}
	if depth > 2 {
		return kinds[0]
	}
	inner := func() string {
		return strings.ReplaceAll(processor(r, depth+1), "processor = [{ mapping = \"root = 1\" }]\n", kinds[0])
	}
	return rapid.SampledFrom([]func() string{
		func() string { return kinds[0] }, func() string { return kinds[1] }, func() string { return kinds[2] },
		func() string { return "processor \"try\" {\n" + inner() + inner() + "}\n" },
		func() string { return "processor \"branch\" {\n request_map = \"root = 1\"\n" + inner() + "}\n" },
		func() string {
			return "processor \"switch\" {\n case {\n check = \"true\"\n" + inner() + "}\n case {\n" + inner() + "}\n}\n"
		},
		func() string {
			return fmt.Sprintf("processor \"workflow\" {\n order = [[\"a\"]]\n branch \"a\" {\n%s}\n}\n", inner())
		},
	}).Draw(r, "processor")()
}

type compile func(*pipeline.Source, pipeline.Inputs) (*pipeline.Config, hcl.Diagnostics)

// compiled compiles one file, and fails with the findings where it is refused.
func compiled(r *rapid.T, compile compile, text string) *pipeline.Config {
	source, found := pipeline.Load(fstest.MapFS{"main.hcl": {Data: []byte(text)}}, "")
	if !found.HasErrors() {
		cfg, more := compile(source, pipeline.Inputs{})
		if cfg != nil {
			return cfg
		}
		found = more
	}
	var out bytes.Buffer
	_ = source.Print(&out, found)
	r.Fatalf("refused:\n%s\n%s", text, out.String())
	return nil
}

// A string arrives in the engine as it was written, whatever is in it: the engine replaces ${NAME} in raw text, YAML has
// its own escapes, and HCL has others.
func TestAnyStringArrivesAsWritten(t *testing.T) {
	env, err := pipeline.ForChecks(plugins())
	if err != nil {
		t.Fatal(err)
	}
	compile := pipeline.Repeated(plugins())
	strange := rapid.SampledFrom([]string{"${HOME}", "${HOME:x}", "$", "$${HOME}", "%{ if x }", "${!a}", "\x00", "\x7f", "\u0085", "\u2028", "\ufeff", "\ufffe", "🙂", "'", "\"", "\\", "\n", "\r\n", "\t", ": ", "# ", "- ", "{{", "!!str", "null", "1e3", " "})
	rapid.Check(t, func(r *rapid.T) {
		want := strings.Join(rapid.SliceOf(rapid.OneOf(strange, rapid.String())).Draw(r, "parts"), "")
		want = cty.StringVal(want).AsString() // HCL's strings are normalized (NFC)
		file := hclwrite.NewEmptyFile()
		p := file.Body().AppendNewBlock("pipeline", []string{"p"}).Body()
		p.AppendNewBlock("input", []string{"stdin"})
		probe := p.AppendNewBlock("processor", []string{"probe"}).Body()
		probe.SetAttributeValue("text", cty.StringVal(want))
		probe.SetAttributeValue("map", cty.MapVal(map[string]cty.Value{want: cty.StringVal(want)}))
		p.AppendNewBlock("output", []string{"drop"})
		cfg := compiled(r, compile, string(file.Bytes()))
		if got := cfg.Pipelines[0].Components[1].Config; got != want {
			r.Errorf("the plugin got %q, not %q", got, want)
		}
		if got := throughBuilder(r, env, cfg.Pipelines[0].YAML); got != want {
			r.Errorf("the stream got %q, not %q", got, want)
		}
		lines := strings.Count(cfg.Pipelines[0].YAML, "\n")
		if len(cfg.Pipelines[0].Lines) != lines {
			r.Errorf("%d lines have %d places", lines, len(cfg.Pipelines[0].Lines))
		}
	})
}

// throughBuilder gives the text to the engine and reads back what it made of it.
func throughBuilder(r *rapid.T, env *service.Environment, text string) (got string) {
	builder := env.NewStreamBuilder()
	if err := builder.SetYAML(text); err != nil {
		r.Fatalf("the engine refuses it: %v\n%s", err, text)
	}
	err := builder.WalkComponents(func(w *service.WalkedComponent) error {
		if w.Name != "probe" {
			return nil
		}
		var conf struct {
			Probe struct {
				Text string
				Map  map[string]string
			}
		}
		if err := yaml.Unmarshal([]byte(w.ConfigYAML()), &conf); err != nil {
			return err
		}
		if got = conf.Probe.Text; conf.Probe.Map[got] != got {
			return fmt.Errorf("map is %q", conf.Probe.Map)
		}
		return nil
	})
	if err != nil {
		r.Fatal(err)
	}
	return got
}

// Whatever a file holds, there is an answer and no panic, and a position is inside the file.
func FuzzCompile(f *testing.F) {
	f.Add("pipeline \"a\" {\n input \"stdin\" {}\n output \"drop\" {}\n}\n")
	f.Add("locals {\n a = local.a\n}\nvariable \"x\" {\n type = list(string)\n default = [1]\n}\n")
	f.Add("kafka \"m\" {\n brokers = [for b in [\"a:1\"] : b]\n sasl = { password = 1 }\n}\n")
	f.Add("pipeline \"a\" {\n input = { stdin = null, label = [] }\n processors = [{}]\n output \"switch\" { case = [{}] }\n}\n")
	compile := pipeline.Repeated(plugins())
	f.Fuzz(func(t *testing.T, text string) {
		dir := fstest.MapFS{"main.hcl": {Data: []byte(text)}}
		source, found := pipeline.Load(dir, "")
		cfg, more := compile(source, pipeline.Inputs{})
		if cfg != nil && more.HasErrors() || cfg == nil && !more.HasErrors() && !found.HasErrors() {
			t.Errorf("configuration and findings disagree: %v", more)
		}
		var out bytes.Buffer
		if err := source.PrintJSON(&out, append(found, more...)); err != nil {
			t.Error(err)
		}
		if err := source.Print(&out, append(found, more...)); err != nil {
			t.Error(err)
		}
	})
}
