package deadletter

import (
	"errors"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
)

func parse(t *testing.T, yaml string) (Config, error) {
	t.Helper()
	conf, err := Spec().ParseYAML(yaml, service.NewEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	return Parse(conf)
}

func TestTheDefaultsAreThoseOfTheSources(t *testing.T) {
	got, err := parse(t, "database: events")
	if want := (Config{Database: "events", Attempts: 3, RetryDelay: 200 * time.Millisecond}); err != nil || got != want {
		t.Errorf("Parse = %+v, %v; want %+v", got, err, want)
	}
}

func TestParseNamesTheArgumentAtFault(t *testing.T) {
	for name, tc := range map[string]struct{ yaml, argument string }{
		"no database":          {`database: ""`, "database"},
		"no attempt":           {"database: events\nattempts: 0", "attempts"},
		"attempts without end": {"database: events\nattempts: 101", "attempts"},
		"a negative delay":     {"database: events\nretry_delay: -1s", "retry_delay"},
		"a delay too long":     {"database: events\nretry_delay: 31s", "retry_delay"},
		"a delay that is none": {"database: events\nretry_delay: soon", "retry_delay"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(t, tc.yaml)
			if at, ok := errors.AsType[*ArgumentError](err); !ok || at.Argument() != tc.argument || at.Error() == "" {
				t.Errorf("Parse: %v", err)
			}
		})
	}
}
