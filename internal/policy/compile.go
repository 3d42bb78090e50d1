package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
)

// question is the document that is asked for; its package is the one that a policy for this listener declares.
const question = "data.appliance.authz"

// Module is one Rego file.
type Module struct {
	Name   string // as findings name it
	Source string
}

// Load reads the modules of a directory, without its tests.
func Load(dir fs.FS) ([]Module, error) {
	names, err := fs.Glob(dir, "*.rego")
	if err != nil {
		return nil, fmt.Errorf("list policies: %w", err)
	}
	var modules []Module
	for _, name := range names {
		if strings.HasSuffix(name, "_test.rego") {
			continue
		}
		source, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, fmt.Errorf("read policy: %w", err)
		}
		modules = append(modules, Module{Name: name, Source: string(source)})
	}
	return modules, nil
}

// Finding is one mistake in a policy.
type Finding struct {
	File      string
	Line, Col int // from 1; 0 where the mistake has no place
	Message   string
}

// String gives file:line:col: message.
func (f Finding) String() string {
	if f.Line == 0 {
		return f.File + ": " + f.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Col, f.Message)
}

// InvalidError is a policy that can't be used.
type InvalidError struct{ Findings []Finding }

// Error gives the findings, one a line.
func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Findings))
	for i, f := range e.Findings {
		lines[i] = f.String()
	}
	return "compile policy: " + strings.Join(lines, "\n")
}

// Compile checks modules without using them; its error is an *InvalidError.
func Compile(modules []Module) error {
	_, err := compile(modules)
	return err
}

func prepare(ctx context.Context, modules []Module, config Config) (*prepared, error) {
	compiler, err := compile(modules)
	if err != nil {
		return nil, err
	}
	query, err := rego.New(
		rego.Query(question),
		rego.Compiler(compiler),
		rego.Store(inmem.NewFromObject(config.data())),
		rego.StrictBuiltinErrors(true), // an error inside a rule is an error, and not an undefined that a "not" turns around
	).PrepareForEval(ctx)
	if err != nil {
		return nil, fmt.Errorf("prepare policy: %w", err)
	}
	return &prepared{query: query, revision: revision(modules)}, nil
}

func compile(modules []Module) (*ast.Compiler, error) {
	parsed := map[string]*ast.Module{}
	var findings []Finding
	for _, m := range modules {
		module, err := ast.ParseModuleWithOpts(m.Name, m.Source, ast.ParserOptions{RegoVersion: ast.RegoV1, Capabilities: offline()})
		switch {
		case err != nil:
			findings = append(findings, locate(m.Name, err)...)
		case module != nil: // nil for an empty file
			parsed[m.Name] = module
		}
	}
	if len(findings) > 0 {
		return nil, &InvalidError{findings}
	}
	compiler := ast.NewCompiler().WithStrict(true).WithCapabilities(offline())
	if compiler.Compile(parsed); compiler.Failed() {
		return nil, &InvalidError{locate("", compiler.Errors)}
	}
	return compiler, answers(compiler)
}

// answers refuses a policy that could never allow anything because its decision is elsewhere.
func answers(compiler *ast.Compiler) error {
	if len(compiler.GetRulesExact(ast.MustParseRef(question+".allow"))) > 0 {
		return nil
	}
	return &InvalidError{[]Finding{{File: "policy", Message: "no module has a rule " + question + ".allow"}}}
}

// offline is the language without what reaches out of the process: a decision asks nobody and tells nobody.
func offline() *ast.Capabilities {
	capabilities := ast.CapabilitiesForThisVersion()
	capabilities.Builtins = slices.DeleteFunc(capabilities.Builtins, func(b *ast.Builtin) bool {
		return slices.Contains([]string{"http.send", "net.lookup_ip_addr", "opa.runtime"}, b.Name)
	})
	capabilities.AllowNet = []string{}
	return capabilities
}

func locate(file string, err error) []Finding {
	var several ast.Errors
	var single *ast.Error
	switch {
	case errors.As(err, &several):
	case errors.As(err, &single):
		several = ast.Errors{single}
	default:
		return []Finding{{File: file, Message: err.Error()}}
	}
	findings := make([]Finding, 0, len(several))
	for _, one := range several {
		found := Finding{File: file, Message: one.Message}
		if at := one.Location; at != nil {
			found.File, found.Line, found.Col = at.File, at.Row, at.Col
		}
		findings = append(findings, found)
	}
	return findings
}

func revision(modules []Module) string {
	sum := sha256.New()
	for _, m := range modules {
		fmt.Fprintf(sum, "%d %s %d %s", len(m.Name), m.Name, len(m.Source), m.Source)
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
}
