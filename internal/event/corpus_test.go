package event_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"appliance/internal/event"
)

// corpus returns the inputs of one folder of the decoder corpus by name.
func corpus(t testing.TB, folder string) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "corpus", folder, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus in %s: %v", folder, err)
	}
	inputs := make(map[string][]byte, len(files))
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		inputs[strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))] = content
	}
	return inputs
}

// parseRecord reads a record of the corpus: header lines, an empty line, the value.
func parseRecord(b []byte) event.Record {
	var r event.Record
	for len(b) > 0 {
		line, rest, _ := bytes.Cut(b, []byte("\n"))
		b = rest
		if len(line) == 0 {
			break
		}
		name, value, found := bytes.Cut(line, []byte(": "))
		h := event.Header{Key: string(name)}
		if found {
			h.Value = value
		}
		r.Headers = append(r.Headers, h)
	}
	r.Value = b
	return r
}

// texts are JSON texts too long for a file; the name's beginning says what PostgreSQL makes of them, as in the corpus.
func texts() map[string]string {
	repeat := strings.Repeat
	return map[string]string{
		"held number of 131072 digits":               repeat("9", 131072),
		"held number of 131072 digits and a point":   repeat("9", 131072) + ".5",
		"held number with 16383 digits of fraction":  "0." + repeat("3", 16383),
		"held number whose exponent saves its scale": "0." + repeat("0", 16384) + "e1",
		"held number far after zeros":                "0." + repeat("0", 9000) + "1e140000",
		"held string of a megabyte":                  `"` + repeat("é", 1<<19) + `"`,
		"held 100000 empty arrays":                   "[" + repeat("[],", 100000) + "[]]",
		"held nested 512 deep":                       repeat("[", 512) + repeat("]", 512),
		"held objects nested 512 deep":               repeat(`{"a":`, 511) + "{}" + repeat("}", 511),
		"refused number of 131073 digits":            repeat("9", 131073),
		"refused number of 131073 digits and e0":     repeat("9", 131073) + "e0",
		"refused number with 16384 digits":           "0." + repeat("0", 16384),
		"refused number far after zeros":             "0." + repeat("0", 9000) + "1e140073",
		"refused half a surrogate after a megabyte":  `["` + repeat("x", 1<<20) + `","\udc00"]`,
		"refused nested 100000 deep":                 repeat(`[{"a":`, 50000),
		"deep arrays, held by PostgreSQL alone":      repeat("[", 513) + repeat("]", 513),
		"deep objects, held by PostgreSQL alone":     repeat(`{"a":`, 512) + "{}" + repeat("}", 512),
	}
}
