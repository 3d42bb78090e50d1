package pipeline

import "github.com/hashicorp/hcl/v2"

// Repeated compiles many configurations against one language, for fuzzing: making the language takes most of the time.
func Repeated(plugins []Plugin) func(*Source, Inputs) (*Config, hcl.Diagnostics) {
	l, err := newLanguage(plugins)
	if err != nil {
		panic(err)
	}
	return func(s *Source, in Inputs) (*Config, hcl.Diagnostics) {
		in.Plugins = plugins
		return s.compile(l, in)
	}
}
