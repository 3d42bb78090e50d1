// Package pipeline is the language: a directory of HCL becomes resources, listeners and pipelines, each pipeline as the
// text that the engine takes. Load reads and parses, Compile decides; `lint` and `run` call both in the same way, so what
// lints runs and what runs lints. Everything found on the way is a diagnostic with a position, up to the last printer.
package pipeline

import (
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/service"

	// The components of the engine's core register themselves with its global environment, which Engine copies.
	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
)

// Kind says what a component does in a stream. It is also the type of its block.
type Kind string

// The kinds of components that a pipeline is made of.
const (
	Input     Kind = "input"
	Processor Kind = "processor"
	Output    Kind = "output"
	Cache     Kind = "cache"
	RateLimit Kind = "rate_limit"
	Scanner   Kind = "scanner"
)

// Plugin is a component of ours: what documents it, and the first step of its constructor, which is what lint runs.
type Plugin struct {
	Kind  Kind
	Name  string
	Spec  *service.ConfigSpec
	Parse func(*service.ParsedConfig) (any, error) // the checked configuration; an error may be an ArgumentError
}

// ArgumentError is what a plugin's Parse returns to have lint point at the argument at fault. Several may be joined.
type ArgumentError interface {
	error
	Argument() string // dotted path of argument names, such as "batch.size"
}

// Chooser is an ArgumentError whose last path element is a name of the user's, which should have been one of Choices.
type Chooser interface {
	ArgumentError
	Choices() []string
}

// Describe makes a Plugin of what each plugin package exports.
func Describe[C any](kind Kind, name string, spec *service.ConfigSpec, parse func(*service.ParsedConfig) (C, error)) Plugin {
	return Plugin{Kind: kind, Name: name, Spec: spec, Parse: func(conf *service.ParsedConfig) (any, error) {
		return parse(conf)
	}}
}

// Engine returns a fresh environment with the engine's core components and nothing of ours. A run registers the plugins
// in it whose constructors do something; lint registers the same specifications with constructors that refuse.
func Engine() *service.Environment { return service.NewEnvironment() }

// ForChecks returns the environment in which configurations are checked: it knows the core and the plugins, and nothing of
// the plugins' can be constructed in it.
func ForChecks(plugins []Plugin) (*service.Environment, error) {
	env := Engine()
	for _, p := range plugins {
		if err := p.register(env); err != nil {
			return nil, fmt.Errorf("register %s %s: %w", p.Kind, p.Name, err)
		}
	}
	return env, nil
}

// language is what configurations are checked against: an environment and what it knows.
type language struct {
	env     *service.Environment
	specs   specs
	plugins []Plugin
}

func newLanguage(plugins []Plugin) (language, error) {
	env, err := ForChecks(plugins)
	if err != nil {
		return language{}, err
	}
	known, err := readSpecs(env, plugins)
	return language{env, known, plugins}, err
}

func (p Plugin) register(env *service.Environment) error {
	refusal := fmt.Errorf("%s %s: this environment checks and does not run", p.Kind, p.Name)
	switch p.Kind {
	case Input:
		return env.RegisterBatchInput(p.Name, p.Spec, func(*service.ParsedConfig, *service.Resources) (service.BatchInput, error) {
			return nil, refusal
		})
	case Processor:
		return env.RegisterBatchProcessor(p.Name, p.Spec, func(*service.ParsedConfig, *service.Resources) (service.BatchProcessor, error) {
			return nil, refusal
		})
	case Output:
		return env.RegisterBatchOutput(p.Name, p.Spec, func(*service.ParsedConfig, *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
			return nil, service.BatchPolicy{}, 0, refusal
		})
	case Cache, RateLimit, Scanner:
	}
	return fmt.Errorf("a plugin cannot be a %s", p.Kind)
}
