package pipeline

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// boundPipeline is a pipeline between binding and translation.
type boundPipeline struct {
	name       string
	at         hcl.Range
	node       *node
	uses       []use
	components []boundComponent
	parsed     []any // by the plugins, one per component
	kafka      *node // the input's arguments with their defaults, nil where the input is another
	lanes      *node // what the output's max_in_flight becomes, nil where it says so itself or has none
}

func (c *compiler) pipelines() {
	top := pipelineBlock()
	for _, block := range c.byType[blockPipeline] {
		c.uses, c.components = nil, nil
		n := c.block(top, block)
		b := boundPipeline{
			name: block.Labels[0], at: block.DefRange(), node: n, uses: c.uses, components: c.components,
			parsed: make([]any, len(c.components)),
		}
		if in := n.get("input").get(blockKafka); in != nil {
			b.kafka = complete(c.specs[Input][blockKafka].Config.Children, in)
			b.lanes = c.inFlight(b)
		}
		c.bound = append(c.bound, b)
	}
}

// inFlight returns the lanes of the input where the output bounds its writes in flight and was not told otherwise: fewer
// would starve lanes, and the engine's default of 64 would promise an order that only the input keeps.
func (c *compiler) inFlight(b boundPipeline) *node {
	for _, m := range b.node.get("output").membersOr() {
		spec, ok := c.specs[Output][m.name]
		if ok && find(spec.Config.Children, "max_in_flight") != nil && m.node.get("max_in_flight") == nil {
			return b.kafka.get("lanes")
		}
	}
	return nil
}

// translate makes the engine's text of each pipeline, and lets the plugins and then the engine check it. A pipeline with
// errors of its own is left out, since what the engine says of half a text misleads.
func (c *compiler) translate() {
	ok := !c.failed()
	for i := range c.bound {
		b := &c.bound[i]
		for j, part := range b.components {
			b.parsed[j] = c.parse(part)
		}
		if !ok {
			continue
		}
		p := b.pipeline(c.secrets)
		c.engine(p)
		c.config.Pipelines = append(c.config.Pipelines, p)
	}
}

// parse runs the first step of a plugin's constructor; nil for the engine's own components.
func (c *compiler) parse(part boundComponent) any {
	i := slices.IndexFunc(c.inputs.Plugins, func(p Plugin) bool { return p.Kind == part.kind && p.Name == part.name })
	if i < 0 {
		return nil
	}
	plugin := c.inputs.Plugins[i]
	text, _ := render(part.body, nil)
	if len(part.body.members) == 0 {
		text = "{}"
	}
	conf, err := plugin.Spec.ParseYAML(text, c.env)
	if err != nil {
		if !c.failed() { // otherwise a refused argument is missing here, and has been reported
			c.fail(CodeEngine, part.at, "Invalid configuration", "%s %q: %v.", part.kind, part.name, err)
		}
		return nil
	}
	parsed, err := plugin.Parse(conf)
	for _, refusal := range unjoin(err) {
		c.refusal(part, refusal)
	}
	return parsed
}

// unjoin returns the errors that were joined.
func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, unjoin(e)...)
	}
	return all
}

// refusal points at the argument that a plugin refused, or at the component where it names none.
func (c *compiler) refusal(part boundComponent, err error) {
	of, ok := errors.AsType[ArgumentError](err)
	if !ok {
		c.fail(CodeInvalidValue, part.at, "Invalid configuration", "%s %q: %v.", part.kind, part.name, err)
		return
	}
	at := part.at
	if n := part.body.nearestTo(of.Argument()); n != nil && n != part.body {
		at = n.at
	}
	code, hint := CodeInvalidValue, ""
	if strings.HasPrefix(of.Argument(), "properties.") {
		code = CodeFixedProperty
	}
	if choice, ok := errors.AsType[Chooser](err); ok {
		given := choice.Argument()
		if _, after, ok := strings.Cut(given, "."); ok {
			given = after
		}
		hint = didYouMean(given, choice.Choices())
	}
	c.fail(code, at, "Invalid argument", "%v.%s", err, hint)
}

// engine lets the engine's linter look at the text, and maps its lines back.
func (c *compiler) engine(p Pipeline) {
	linter := c.env.FullConfigSchema("", "").NewStreamConfigLinter().SetSkipEnvVarCheck(true)
	lints, err := linter.LintYAML([]byte(p.YAML))
	if err != nil {
		c.fail(CodeEngine, p.Range, "Refused by the engine", "pipeline %q: %v.", p.Name, err)
		return
	}
	for _, lint := range lints {
		c.fail(CodeEngine, p.Line(lint.Line), "Refused by the engine", "%s.", strings.TrimSuffix(lint.What, "."))
	}
}

// pipeline makes the result of a pipeline without errors.
func (b *boundPipeline) pipeline(hide *Secrets) Pipeline {
	p := Pipeline{Name: b.name, Range: b.at, DrainTimeout: b.node.dur("drain_timeout"), Restart: decodeRestart(b.node.get("restart"))}
	stream := b.stream()
	p.YAML, p.Lines = render(stream, nil)
	p.Redacted, _ = render(stream, hide)
	for i, part := range b.components {
		p.Components = append(p.Components, Component{part.kind, part.name, part.at, b.parsed[i]})
	}
	for _, u := range b.uses {
		if !slices.Contains(p.Uses, u.to) {
			p.Uses = append(p.Uses, u.to)
		}
	}
	p.DeadLetters, p.Databases = names(p.Uses, blockDeadLetters), names(p.Uses, blockPostgres)
	p.Kafka = b.subscription()
	return p
}

func names(refs []Reference, kind string) []string {
	var out []string
	for _, r := range refs {
		if r.Kind == kind {
			out = append(out, r.Name)
		}
	}
	return out
}

// stream gives the pipeline the engine's shape. Order needs one thread; and the engine's own HTTP server stays off.
func (b *boundPipeline) stream() *node {
	of := func(members ...member) *node { return &node{at: b.at, shape: object, members: members} }
	value := func(v cty.Value) *node { return &node{at: b.at, value: v} }
	processors := b.node.get("processors")
	if processors == nil {
		processors = &node{at: b.at, shape: list}
	}
	stream := of(
		member{"http", of(member{"enabled", value(cty.False)})},
		member{"input", b.node.get("input")},
		member{"pipeline", of(member{"threads", value(cty.NumberIntVal(1))}, member{"processors", processors})},
		member{"output", b.output()},
	)
	for _, kind := range []string{"cache", "rate_limit"} {
		if declared := b.node.get(kind + "s"); declared != nil {
			stream.add(kind+"_resources", labelled(declared))
		}
	}
	return stream
}

// labelled turns blocks with a name into the engine's list of components with a label.
func labelled(declared *node) *node {
	out := &node{at: declared.at, shape: list}
	for _, m := range declared.members {
		item := &node{at: m.node.at, shape: object}
		item.add("label", &node{at: m.node.at, value: cty.StringVal(m.name)})
		for _, part := range m.node.members {
			if part.name != "label" {
				item.members = append(item.members, part)
			}
		}
		out.items = append(out.items, item)
	}
	return out
}

// output returns the output, with as many writes in flight as the input has lanes.
func (b *boundPipeline) output() *node {
	written := b.node.get("output")
	if b.lanes == nil || written == nil {
		return written
	}
	out := &node{at: written.at, shape: object}
	for _, m := range written.members {
		if m.name != "label" && m.name != "processors" {
			m.node = &node{at: m.node.at, shape: object, members: append(slices.Clone(m.node.members), member{"max_in_flight", b.lanes})}
		}
		out.members = append(out.members, m)
	}
	return out
}

// subscription returns the part of the input that the supervisor's subscription is made of.
func (b *boundPipeline) subscription() *KafkaInput {
	if b.kafka == nil {
		return nil
	}
	in, written := b.kafka, b.node.get("input").get(blockKafka)
	k := &KafkaInput{Cluster: in.str("cluster"), Group: in.str("group"), Start: in.str("start"), Topics: in.get("topics").texts(), Lanes: in.num("lanes")}
	for i, part := range b.components {
		if part.kind == Input && part.body == written {
			k.Config = b.parsed[i]
		}
	}
	return k
}

// describe names a pipeline in a finding about another.
func (b *boundPipeline) describe() string {
	return fmt.Sprintf("pipeline %q at %s", b.name, position(b.at))
}
