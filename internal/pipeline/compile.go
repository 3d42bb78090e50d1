package pipeline

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/zclconf/go-cty/cty"
)

// Inputs is what a configuration depends on beside its own text.
type Inputs struct {
	Lookup    func(name string) (string, bool) // the environment, for env()
	Variables map[string]string                // values given from outside, by name of variable
	Plugins   []Plugin                         // our components, beside those of the engine's core
}

// compiler is one compilation on its way.
type compiler struct {
	binder
	source *Source
	inputs Inputs
	env    *service.Environment
	scope  *scope
	tops   map[string]topBlock
	byType map[string][]*hclsyntax.Block

	config *Config
	nodes  map[string]*node // completed nodes by "type.label", for checks of meaning and the effective configuration
	ranges map[string]hcl.Range
	bound  []boundPipeline
}

// Compile evaluates, checks and translates. The configuration is nil if anything was found that is an error; warnings
// come beside it. It reads nothing but inputs and, for file(), the source's directory.
func (s *Source) Compile(in Inputs) (*Config, hcl.Diagnostics) {
	l, err := newLanguage(in.Plugins)
	if err != nil { // a plugin's specification is wrong: a mistake of the program, not of the configuration
		panic(err)
	}
	return s.compile(l, in)
}

func (s *Source) compile(l language, in Inputs) (*Config, hcl.Diagnostics) {
	c := s.compiler(l, in)
	c.group()
	c.declare()
	c.variables()
	c.resources()
	c.settings()
	c.pipelines()
	c.translate()
	c.meaning()
	c.scope.unused(&c.report)
	c.config.finish(c)
	return c.result()
}

func (s *Source) compiler(l language, in Inputs) *compiler {
	if in.Lookup == nil {
		in.Lookup = func(string) (string, bool) { return "", false }
	}
	c := &compiler{source: s, inputs: in, env: l.env, tops: map[string]topBlock{}, byType: map[string][]*hclsyntax.Block{}}
	c.binder = binder{specs: l.specs, sources: s.texts, secrets: s.secrets}
	c.scope = newScope(functions(in.Lookup, s.dir, s.secrets))
	c.config = &Config{Kafka: map[string]Kafka{}, Postgres: map[string]Postgres{}, DeadLetters: map[string]DeadLetters{}, Secrets: s.secrets}
	c.nodes, c.ranges = map[string]*node{}, map[string]hcl.Range{}
	for _, t := range topBlocks() {
		c.tops[t.name] = t
	}
	return c
}

// topBlocks returns every block that may stand in a file.
func topBlocks() []topBlock {
	all := []topBlock{
		{blockVariable, "name", "A value that can be given from outside, as the environment variable " + variablePrefix + "NAME.", nil},
		{blockLocals, "", "Names for expressions.", nil},
	}
	all = append(all, resources()...)
	all = append(all, settings()...)
	return append(all, pipelineBlock())
}

// group sorts the blocks by type, and reports those that the language doesn't know, that lack their label, or that have
// the name of another.
func (c *compiler) group() {
	first := map[string]hcl.Range{}
	for _, block := range c.source.blocks {
		top, known := c.tops[block.Type]
		if !known {
			c.unknownTop(block)
			continue
		}
		if !c.labelled(top, block) {
			continue
		}
		key := block.Type
		if top.label != "" {
			key += "." + block.Labels[0]
		}
		if earlier, twice := first[key]; twice && block.Type != blockLocals {
			c.duplicate(top, block, earlier)
			continue
		}
		first[key] = block.DefRange()
		c.byType[block.Type] = append(c.byType[block.Type], block)
	}
}

func (c *compiler) unknownTop(block *hclsyntax.Block) {
	var names []string
	for name := range c.tops {
		names = append(names, name)
	}
	c.fail(CodeUnknownBlock, block.TypeRange, "Unsupported block", "There is no block %q.%s", block.Type, didYouMean(block.Type, names))
}

func (c *compiler) labelled(top topBlock, block *hclsyntax.Block) bool {
	form, want := top.name+" { … }", 0
	if top.label != "" {
		form, want = fmt.Sprintf("%s %q { … }", top.name, "NAME"), 1
	}
	if len(block.Labels) != want {
		c.fail(CodeLabels, block.DefRange(), "Wrong number of labels", "Write it as %s.", form)
		return false
	}
	if want == 1 && !hclsyntax.ValidIdentifier(block.Labels[0]) {
		c.fail(CodeLabels, block.LabelRanges[0], "Invalid name", "A name is letters, digits, _ and -, beginning with a letter: references are written %s.NAME.", top.name)
		return false
	}
	return true
}

func (c *compiler) duplicate(top topBlock, block *hclsyntax.Block, earlier hcl.Range) {
	if top.label == "" {
		c.fail(CodeDuplicateBlock, block.DefRange(), "Duplicate block", "%s stands once, and is already at %s.", top.name, position(earlier))
		return
	}
	c.fail(CodeDuplicateName, block.DefRange(), "Duplicate name", "%s is already at %s. Neither is applied.", blockTitle(block), position(earlier))
}

// declare makes every name known before anything is evaluated, so that the order of blocks and files doesn't matter.
func (c *compiler) declare() {
	for _, kind := range []string{blockKafka, blockPostgres, blockDeadLetters, blockTopic, blockPipeline} {
		for _, block := range c.byType[kind] {
			ref := Reference{kind, block.Labels[0]}
			c.scope.set(kind, ref.Name, cty.DynamicVal)
			c.ranges[ref.String()] = block.DefRange()
		}
	}
}

func (c *compiler) variables() {
	for _, block := range c.byType[blockVariable] {
		if variableFields(&c.report, block) {
			c.scope.variable(&c.report, block, c.given)
		} else {
			c.scope.set(rootVar, block.Labels[0], cty.DynamicVal)
		}
	}
	for name := range c.inputs.Variables {
		if _, declared := c.scope.roots[rootVar][name]; !declared {
			c.fail(CodeUnknownReference, hcl.Range{Filename: "-var"}, "Unknown variable", "No block declares variable %q.%s",
				name, didYouMean(name, slices.Collect(maps.Keys(c.scope.roots[rootVar]))))
		}
	}
	var attrs []*hclsyntax.Attribute
	for _, block := range c.byType[blockLocals] {
		for _, attr := range inOrder(block.Body.Attributes) {
			if i := slices.IndexFunc(attrs, func(a *hclsyntax.Attribute) bool { return a.Name == attr.Name }); i >= 0 {
				c.fail(CodeDuplicateName, attr.NameRange, "Duplicate name", "local.%s is already at %s.", attr.Name, position(attrs[i].NameRange))
				continue
			}
			attrs = append(attrs, attr)
		}
		for _, nested := range block.Body.Blocks {
			c.fail(CodeUnknownBlock, nested.TypeRange, "Unsupported block", "locals has no blocks.")
		}
	}
	c.scope.locals(&c.report, attrs)
}

// given returns a variable's value from outside: as an input, or as APPLIANCE_VAR_NAME in the environment.
func (c *compiler) given(name string) (string, bool) {
	if value, ok := c.inputs.Variables[name]; ok {
		return value, true
	}
	return c.inputs.Lookup(variablePrefix + name)
}

// block checks, binds and completes one block.
func (c *compiler) block(top topBlock, block *hclsyntax.Block) *node {
	c.scope.check(&c.report, block.Body)
	c.ctx = c.scope.context()
	bound := c.body(top.fields, block.Body, block.DefRange(), blockTitle(block))
	done := complete(top.fields, bound)
	key := block.Type
	if top.label != "" {
		key += "." + block.Labels[0]
	}
	c.nodes[key] = done
	return done
}

func (c *compiler) resources() {
	for _, top := range resources() {
		for _, block := range c.byType[top.name] {
			before := len(c.diags.Errs())
			n, name := c.block(top, block), block.Labels[0]
			c.keep(top.name, name, n)
			if len(c.diags.Errs()) == before {
				c.scope.set(top.name, name, n.toValue(Reference{top.name, name}))
			}
		}
	}
	for _, block := range c.byType[blockPipeline] {
		ref := Reference{blockPipeline, block.Labels[0]}
		c.scope.set(rootPipeline, ref.Name, cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal(ref.Name)}).Mark(referenceMark{ref}))
	}
}

func (c *compiler) keep(kind, name string, n *node) {
	switch kind {
	case blockKafka:
		c.config.Kafka[name] = decodeKafka(name, n)
	case blockPostgres:
		c.config.Postgres[name] = decodePostgres(name, n)
	case blockDeadLetters:
		c.config.DeadLetters[name] = decodeDeadLetters(name, n)
	case blockTopic:
		c.config.Topics = append(c.config.Topics, decodeTopic(name, n))
	}
}

// settings binds the blocks that stand once; one that is absent has its defaults, but for the listener.
func (c *compiler) settings() {
	for _, top := range settings() {
		n := complete(top.fields, &node{shape: object})
		if written := c.byType[top.name]; len(written) > 0 {
			n = c.block(top, written[0])
		} else if top.name == blockAdmin {
			continue
		}
		switch top.name {
		case blockAdmin:
			c.config.Admin = decodeAdmin(n)
		case blockReplay:
			c.config.Replay = decodeReplay(n)
		case blockLag:
			c.config.Lag = decodeLag(n)
		case blockShutdown:
			c.config.Shutdown = decodeShutdown(n)
		case blockTelemetry:
			c.config.Telemetry = decodeTelemetry(n)
		}
	}
}

// finish sorts what has no order of its own and computes the hash.
func (c *Config) finish(from *compiler) {
	slices.SortFunc(c.Topics, func(a, b Topic) int { return cmp.Compare(a.Label, b.Label) })
	c.effective = from.effective()
	sum := sha256.Sum256(c.Effective())
	c.Hash = hex.EncodeToString(sum[:])
}

func (c *compiler) result() (*Config, hcl.Diagnostics) {
	sortDiagnostics(c.diags)
	if c.failed() {
		return nil, c.diags
	}
	return c.config, c.diags
}
