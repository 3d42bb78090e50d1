package pipeline

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// The types and kinds of a field, in the engine's words; duration and reference are ours.
const (
	typeString    = "string"
	typeInt       = "int"
	typeFloat     = "float"
	typeBool      = "bool"
	typeObject    = "object"
	typeAny       = "unknown"
	typeDuration  = "duration"
	typeReference = "reference"

	kindScalar = "scalar"
	kindArray  = "array"
	kindArrays = "2darray"
	kindMap    = "map"
)

// field describes one argument, of an engine component (as the engine prints it) or of a block of the language.
type field struct {
	Name         string            `json:"name"`
	Type         string            `json:"type"`
	Kind         string            `json:"kind"`
	Description  string            `json:"description"`
	Default      json.RawMessage   `json:"default"` // empty where there is none
	Advanced     bool              `json:"is_advanced"`
	Deprecated   bool              `json:"is_deprecated"`
	Optional     bool              `json:"is_optional"`
	Secret       bool              `json:"is_secret"`
	Interpolated bool              `json:"interpolated"`
	Bloblang     bool              `json:"bloblang"`
	Options      []string          `json:"options"`
	Annotated    [][2]string       `json:"annotated_options"`
	Children     []field           `json:"children"`
	Examples     []json.RawMessage `json:"examples"`

	refers string                 // the kind of resource that a reference names
	refuse func(value any) string // why a value cannot be, or ""
}

// component is a component's specification, as the engine prints it.
type component struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Status      string `json:"status"`
	Summary     string `json:"summary"`
	Description string `json:"description"`
	Footnotes   string `json:"footnotes"`
	Config      field  `json:"config"`
	Examples    []struct {
		Title, Summary, Config string
	} `json:"examples"`
}

// specs holds the specifications of one environment.
type specs map[Kind]map[string]component

// readSpecs asks the environment what it knows. It walks, since the engine's Get functions read the global registry. The
// plugins' own fields that name resources become references.
func readSpecs(env *service.Environment, plugins []Plugin) (specs, error) {
	s, failed := specs{}, error(nil)
	into := func(kind Kind) func(string, *service.ConfigView) {
		s[kind] = map[string]component{}
		return func(name string, view *service.ConfigView) {
			c, err := readSpec(view)
			if err != nil {
				failed = fmt.Errorf("read specification of %s %s: %w", kind, name, err)
			}
			s[kind][name] = c
		}
	}
	env.WalkInputs(into(Input))
	env.WalkProcessors(into(Processor))
	env.WalkOutputs(into(Output))
	env.WalkCaches(into(Cache))
	env.WalkRateLimits(into(RateLimit))
	env.WalkScanners(into(Scanner))
	for _, p := range plugins {
		c := s[p.Kind][p.Name]
		refer(c.Config.Children)
	}
	return s, failed
}

// refer turns the fields of a plugin that name a resource into references: by convention cluster, database and
// dead_letters. The engine knows only strings, and a plugin receives the resource's name.
func refer(fields []field) {
	kinds := map[string]string{"cluster": blockKafka, "database": blockPostgres, "dead_letters": blockDeadLetters}
	for i := range fields {
		f := &fields[i]
		if kind, ok := kinds[f.Name]; ok && f.Type == typeString && !f.is(kindArray) && !f.is(kindMap) {
			f.Type, f.refers = typeReference, kind
		}
		refer(f.Children)
	}
}

func readSpec(view *service.ConfigView) (c component, err error) {
	text, err := view.FormatJSON()
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(text, &c)
}

// names returns the names of the components of a kind, sorted.
func (s specs) names(kind Kind) []string {
	var names []string
	for name := range s[kind] {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// isComponent reports whether the field holds components rather than values, and of which kind.
func (f *field) isComponent() (Kind, bool) {
	switch k := Kind(f.Type); k {
	case Input, Processor, Output, Cache, RateLimit, Scanner:
		return k, true
	default:
		return "", false
	}
}

// isBlock reports whether the field may be written as a block.
func (f *field) isBlock() bool {
	_, component := f.isComponent()
	return component || f.Type == typeObject && len(f.Children) > 0
}

func (f *field) is(kind string) bool { return f.Kind == kind }

func (f *field) hasDefault() bool { return len(f.Default) > 0 }

// required reports whether the engine would refuse the field's absence.
func (f *field) required() bool {
	if f.Optional || f.hasDefault() {
		return false
	}
	if f.Type == typeObject && (f.Kind == kindScalar || f.Kind == "") {
		return slices.ContainsFunc(f.Children, func(c field) bool { return c.required() })
	}
	return true
}

// choices returns the values that an enumeration admits.
func (f *field) choices() []string {
	all := slices.Clone(f.Options)
	for _, o := range f.Annotated {
		all = append(all, o[0])
	}
	return all
}

// element returns the field that describes one element of an array or a map.
func (f *field) element() *field {
	e := *f
	e.Default, e.Optional = nil, false
	e.Kind = kindScalar
	if f.Kind == kindArrays {
		e.Kind = kindArray
	}
	return &e
}

// blockNames returns the types of block by which the field is written: a list also by the singular of its name.
func (f *field) blockNames() []string {
	if one := singular(f.Name); one != f.Name && (f.is(kindArray) || f.is(kindMap)) {
		return []string{one, f.Name}
	}
	return []string{f.Name}
}

func singular(name string) string {
	if stem, ok := strings.CutSuffix(name, "ies"); ok {
		return stem + "y"
	}
	if stem, ok := strings.CutSuffix(name, "nches"); ok { // branches, but caches
		return stem + "nch"
	}
	return strings.TrimSuffix(name, "s")
}
