package cloudevents

import (
	"encoding/json"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// examples returns the configurations that the spec documents.
func examples(t *testing.T) []string {
	t.Helper()
	env := service.NewEnvironment()
	if err := Register(env, Deps{}); err != nil {
		t.Fatal(err)
	}
	var found []string
	env.WalkProcessors(func(name string, view *service.ConfigView) {
		if name != Name {
			return
		}
		text, err := view.FormatJSON()
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Examples []struct{ Config string }
		}
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		for _, e := range doc.Examples {
			found = append(found, e.Config)
		}
	})
	if len(found) == 0 {
		t.Fatal("the spec has no example")
	}
	return found
}
