// Package policy asks Rego who may do what. A policy is compiled once and decides in memory; whatever is not the boolean
// true is a refusal: an undefined rule, a string, an error.
package policy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
)

// patience bounds one decision, which takes some 30 µs: a policy that someone made quadratic in a claim must not hold the
// listener.
const patience = time.Second

// How a request was authenticated, the values of Input.Authentication.
const (
	Verified = "verified" // by a token, whose principal is in the input
	None     = "none"
	Disabled = "disabled" // by the configuration: nobody is asked for a token
)

// Principal is who asks, as the policy sees it.
type Principal struct {
	Subject string         `json:"subject"`
	Issuer  string         `json:"issuer"`
	Scopes  []string       `json:"scopes"`
	Claims  map[string]any `json:"claims"`
}

// Input is what one decision is about.
type Input struct {
	Method         string              `json:"method"`
	Route          string              `json:"route"`  // the route's pattern
	Params         map[string][]string `json:"params"` // path and query parameters
	Authentication string              `json:"authentication"`
	Principal      *Principal          `json:"principal,omitempty"` // nil without a verified token

	Mutates bool `json:"-"` // the decision is logged, whichever it is
}

// Decision is the answer.
type Decision struct {
	Allow bool
	Rule  string // the grant by its name in the policy, "" for a refusal and for a policy without names
}

// Config is what the policy reads as data.appliance.config. An empty scope stands for any verified token.
type Config struct {
	ReadScope  string
	WriteScope string
}

func (c Config) data() map[string]any {
	return map[string]any{"appliance": map[string]any{"config": map[string]any{
		"read_scope": c.ReadScope, "write_scope": c.WriteScope,
	}}}
}

// Engine decides by the policy that was loaded last. Safe for concurrent use.
type Engine struct {
	log     *slog.Logger
	current atomic.Pointer[prepared]
}

// prepared is one compiled policy. It is immutable, so that a request sees one policy from start to end.
type prepared struct {
	query    rego.PreparedEvalQuery
	revision string
}

// New compiles modules. A policy that does not compile is an *InvalidError.
func New(ctx context.Context, log *slog.Logger, modules []Module, config Config) (*Engine, error) {
	e := &Engine{log: log}
	if err := e.Swap(ctx, modules, config); err != nil {
		return nil, err
	}
	return e, nil
}

// Swap compiles modules and decides by them from now on. On an error the policy that was there stays.
func (e *Engine) Swap(ctx context.Context, modules []Module, config Config) error {
	next, err := prepare(ctx, modules, config)
	if err != nil {
		return err
	}
	e.current.Store(next)
	return nil
}

// Revision names the policy in force: the first 12 hexadecimal digits of the SHA-256 over its modules.
func (e *Engine) Revision() string { return e.current.Load().revision }

// Decide asks the policy in force. With an error the decision is a refusal. A decision about a mutation is logged, allowed
// or not.
func (e *Engine) Decide(ctx context.Context, in Input) (Decision, error) {
	policy := e.current.Load()
	decision, err := policy.decide(ctx, in)
	if in.Mutates {
		e.record(ctx, in, policy.revision, decision, err)
	}
	return decision, err
}

func (p *prepared) decide(ctx context.Context, in Input) (Decision, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	value, err := ast.InterfaceToValue(in)
	if err != nil {
		return Decision{}, fmt.Errorf("convert policy input: %w", err)
	}
	results, err := p.query.Eval(ctx, rego.EvalParsedInput(value))
	if err != nil {
		return Decision{}, fmt.Errorf("evaluate policy: %w", err)
	}
	return read(results), nil
}

// read takes the package's document. Anything but one document with allow = true is a refusal.
func read(results rego.ResultSet) Decision {
	if len(results) != 1 || len(results[0].Expressions) != 1 {
		return Decision{}
	}
	document, ok := results[0].Expressions[0].Value.(map[string]any)
	if !ok {
		return Decision{}
	}
	if allow, ok := document["allow"].(bool); !ok || !allow {
		return Decision{}
	}
	rule, _ := document["rule"].(string)
	return Decision{Allow: true, Rule: rule}
}

// record is the decision log: who tried to change what, and what became of it.
func (e *Engine) record(ctx context.Context, in Input, revision string, d Decision, err error) {
	attrs := []slog.Attr{
		slog.Bool("allow", d.Allow),
		slog.String("method", in.Method),
		slog.String("route", in.Route),
		slog.Any("params", in.Params),
		slog.String("authentication", in.Authentication),
		slog.String("rule", d.Rule),
		slog.String("policy", revision),
	}
	if in.Principal != nil {
		attrs = append(attrs, slog.String("subject", in.Principal.Subject), slog.String("issuer", in.Principal.Issuer))
	}
	level := slog.LevelInfo
	if err != nil && !errors.Is(err, context.Canceled) {
		level = slog.LevelError
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	e.log.LogAttrs(ctx, level, "policy decision", attrs...)
}
