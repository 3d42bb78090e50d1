package policy

import (
	"io/fs"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"

	"appliance/policies"
)

// TestTheShippedPolicies runs policies/*_test.rego by OPA's own runner, each rule as a test.
func TestTheShippedPolicies(t *testing.T) {
	modules := map[string]*ast.Module{}
	names, err := fs.Glob(policies.Files(), "*.rego")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		source, err := fs.ReadFile(policies.Files(), name)
		if err != nil {
			t.Fatal(err)
		}
		modules[name] = ast.MustParseModuleWithOpts(string(source), ast.ParserOptions{RegoVersion: ast.RegoV1})
	}
	store := inmem.New()
	var txn storage.Transaction
	if txn, err = store.NewTransaction(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer store.Abort(t.Context(), txn)
	results, err := tester.NewRunner().SetStore(store).RaiseBuiltinErrors(true).SetModules(modules).RunTests(t.Context(), txn)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for result := range results {
		ran++
		t.Run(result.Name, func(t *testing.T) {
			if !result.Pass() {
				t.Errorf("%s: %s", result.Location, result)
			}
		})
	}
	if ran < 10 { // a glob that finds nothing would pass
		t.Errorf("only %d rules ran as tests", ran)
	}
}
