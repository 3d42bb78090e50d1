package policy

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"

	"appliance/policies"
)

var scopes = Config{ReadScope: "admin:read", WriteScope: "admin:write"}

func source(text string) []Module { return []Module{{Name: "test.rego", Source: text}} }

func engine(t testing.TB, modules []Module, config Config) *Engine {
	t.Helper()
	e, err := New(context.Background(), slog.New(slog.DiscardHandler), modules, config)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func shipped(t testing.TB) []Module {
	t.Helper()
	modules, err := Load(policies.Files())
	if err != nil {
		t.Fatal(err)
	}
	return modules
}

func by(scopes ...string) Input {
	return Input{Method: "GET", Route: "/admin/consumer", Authentication: Verified, Principal: &Principal{Subject: "ada", Scopes: scopes}}
}

func TestOnlyTheBooleanTrueAllows(t *testing.T) { // OP-01
	for name, c := range map[string]struct {
		policy string
		want   bool
	}{
		"true":                       {"allow := true", true},
		"false":                      {"allow := false", false},
		"undefined":                  {`allow if input.method == "BREW"`, false},
		"a string":                   {`allow := "yes"`, false},
		"the word true":              {`allow := "true"`, false},
		"a number":                   {"allow := 1", false},
		"null":                       {"allow := null", false},
		"an object":                  {"allow := {}", false},
		"an object that says true":   {`allow := {"allow": true}`, false},
		"an array":                   {"allow := [true]", false},
		"a set":                      {"allow contains true if true", false},
		"a function":                 {"allow(x) := true if x", false},
		"true below another name":    {"allow.it := true", false},
		"true by another rule":       {"allow := false\nallowed := true", false},
		"a rule that isn't a string": {"allow := true\nrule := 7", true},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := New(t.Context(), slog.New(slog.DiscardHandler), source("package appliance.authz\n"+c.policy), scopes)
			if err != nil {
				if c.want {
					t.Fatal(err)
				}
				return // refused before it could be asked
			}
			got, err := e.Decide(t.Context(), by("admin:write"))
			if err != nil || got.Allow != c.want {
				t.Errorf("got %+v, %v, want %v", got, err, c.want)
			}
			if !got.Allow && got.Rule != "" {
				t.Errorf("a refusal by rule %q", got.Rule)
			}
		})
	}
}

func TestAnErrorIsARefusal(t *testing.T) {
	for name, policy := range map[string]string{
		"two values for one rule": "allow := x if some x in [true, false]",
		"a builtin that fails":    `allow if to_number(input.method) > 0`,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := engine(t, source("package appliance.authz\n"+policy), scopes).Decide(t.Context(), by())
			if err == nil || got.Allow {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestADecisionEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	busy := source("package appliance.authz\nallow if count([1 | some a in numbers.range(1, 3000); some b in numbers.range(1, 3000); a == b]) > 0")
	if got, err := engine(t, busy, scopes).Decide(ctx, by()); err == nil || got.Allow {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAPolicyThatCannotBeUsedIsRefusedWithItsPlace(t *testing.T) {
	for name, c := range map[string]struct {
		policy string
		want   []string
	}{
		"a syntax error":            {"package appliance.authz\n\nallow if {", []string{"test.rego:3:", "compile policy: "}},
		"an unknown name":           {"package appliance.authz\nallow if nobody", []string{"test.rego:2:", "nobody"}},
		"another package":           {"package elsewhere\nallow := true", []string{"no module has a rule data.appliance.authz.allow"}},
		"no rule to ask":            {"package appliance.authz\nallowed := true", []string{"no module has a rule"}},
		"nothing":                   {"", []string{"test.rego: empty module"}},
		"a request to somewhere":    {`package appliance.authz` + "\n" + `allow if http.send({"method": "get", "url": "http://x"}).status_code == 200`, []string{"test.rego:2:", "http.send"}},
		"a look at the environment": {"package appliance.authz\nallow if opa.runtime().env.X", []string{"opa.runtime"}},
		"a variable without a use":  {"package appliance.authz\nallow if { x := 1 }", []string{"test.rego:2:", "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := Compile(source(c.policy))
			var invalid *InvalidError
			if !errors.As(err, &invalid) || len(invalid.Findings) == 0 {
				t.Fatalf("got %v, want an *InvalidError", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in %q", want, err)
				}
			}
		})
	}
}

func TestEveryMistakeOfEveryFileIsTold(t *testing.T) {
	err := Compile([]Module{
		{Name: "a.rego", Source: "package appliance.authz\nallow if {"},
		{Name: "b.rego", Source: "package appliance.authz\nallow if )"},
	})
	for _, file := range []string{"a.rego:2:", "b.rego:2:"} {
		if err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s is not in %v", file, err)
		}
	}
}

func TestALastGoodPolicyStays(t *testing.T) { // OP-02
	e := engine(t, source("package appliance.authz\nallow := true"), scopes)
	before := e.Revision()
	if err := e.Swap(t.Context(), source("package appliance.authz\nallow if {"), scopes); err == nil {
		t.Fatal("a broken policy was taken")
	}
	if got, err := e.Decide(t.Context(), by()); err != nil || !got.Allow || e.Revision() != before {
		t.Errorf("after a broken one: %+v, %v, revision %s", got, err, e.Revision())
	}
	if err := e.Swap(t.Context(), source("package appliance.authz\nallow := false"), scopes); err != nil {
		t.Fatal(err)
	}
	if got, err := e.Decide(t.Context(), by()); err != nil || got.Allow || e.Revision() == before {
		t.Errorf("after a good one: %+v, %v, revision %s", got, err, e.Revision())
	}
}

func TestTheScopesComeFromTheConfiguration(t *testing.T) {
	e := engine(t, shipped(t), Config{ReadScope: "ops.look", WriteScope: "ops.act"})
	for name, c := range map[string]struct {
		in   Input
		want Decision
	}{
		"the configured read scope":  {by("ops.look"), Decision{true, "read_scope"}},
		"the configured write scope": {by("ops.act"), Decision{true, "write_scope"}},
		"the default read scope":     {by("admin:read"), Decision{}},
		"no scopes, as nil":          {by(), Decision{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := e.Decide(t.Context(), c.in); err != nil || got != c.want {
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

func TestAnEmptyScopeTakesAnyVerifiedToken(t *testing.T) {
	e := engine(t, shipped(t), Config{WriteScope: "admin:write"})
	if got, err := e.Decide(t.Context(), by()); err != nil || !got.Allow {
		t.Errorf("a verified token without a scope: %+v, %v", got, err)
	}
	nobody := Input{Method: "GET", Route: "/admin/consumer", Authentication: None}
	if got, err := e.Decide(t.Context(), nobody); err != nil || got.Allow {
		t.Errorf("nobody: %+v, %v", got, err)
	}
}

func TestAPolicyOfTheOperatorsSeesParametersAndClaims(t *testing.T) {
	e := engine(t, source(`package appliance.authz
allow if {
	input.principal.claims.team == "ops"
	"orders" in input.params.topic
}`), scopes)
	in := by()
	in.Principal.Claims = map[string]any{"team": "ops", "exp": 1.5e9, "groups": []any{"a", map[string]any{"b": nil}}}
	in.Params = map[string][]string{"topic": {"orders"}}
	if got, err := e.Decide(t.Context(), in); err != nil || !got.Allow {
		t.Errorf("got %+v, %v", got, err)
	}
	in.Params = nil
	if got, err := e.Decide(t.Context(), in); err != nil || got.Allow {
		t.Errorf("without the parameter: %+v, %v", got, err)
	}
}

func TestDecisionsAboutChangesAreLoggedAndNoOthers(t *testing.T) {
	var out bytes.Buffer
	e, err := New(t.Context(), slog.New(slog.NewTextHandler(&out, nil)), shipped(t), scopes)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Decide(t.Context(), by("admin:read")); err != nil || out.Len() > 0 {
		t.Errorf("a look is logged: %s %v", &out, err)
	}
	in := by("admin:read")
	in.Method, in.Route, in.Mutates = "POST", "/admin/consumer:pause", true
	if _, err := e.Decide(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"allow=false", "subject=ada", "method=POST", "route=/admin/consumer:pause", "policy=" + e.Revision()} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in %s", want, &out)
		}
	}
}

func TestAnErrorAboutAChangeIsLoggedAsOne(t *testing.T) {
	var out bytes.Buffer
	e, err := New(t.Context(), slog.New(slog.NewTextHandler(&out, nil)),
		source("package appliance.authz\nallow := x if some x in [true, false]"), scopes)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Decide(t.Context(), Input{Mutates: true}); err == nil {
		t.Fatal("no error")
	}
	if !strings.Contains(out.String(), "level=ERROR") || !strings.Contains(out.String(), "allow=false") {
		t.Errorf("log: %s", &out)
	}
}

func TestLoadTakesPoliciesAndNotTheirTests(t *testing.T) {
	modules, err := Load(fstest.MapFS{
		"b.rego":      {Data: []byte("package b")},
		"a.rego":      {Data: []byte("package a")},
		"a_test.rego": {Data: []byte("package a_test")},
		"notes.txt":   {Data: []byte("notes")},
		"sub/c.rego":  {Data: []byte("package c")},
	})
	if err != nil || len(modules) != 2 || modules[0].Name != "a.rego" || modules[1].Source != "package b" {
		t.Errorf("got %+v, %v", modules, err)
	}
}

func BenchmarkDecide(b *testing.B) {
	e := engine(b, shipped(b), scopes)
	in := by("admin:read")
	for b.Loop() {
		if got, err := e.Decide(context.Background(), in); err != nil || !got.Allow {
			b.Fatal(got, err)
		}
	}
}
