package embedded

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// Secrets are generated once for a data folder: 52 characters of base32 each, in
// a file of mode 0600.
type Secrets struct {
	Admin            string // ADMIN_AUTH_SECRET, signs tokens for the admin API
	Ingest           string // AUTH_SECRET, signs tokens for the ingest door
	DatabasePassword string // DATABASE_PASSWORD, of PostgreSQL's superuser
}

// Environment returns the secrets under the names of the variables that the
// shipped configuration reads.
func (s Secrets) Environment() map[string]string {
	env := map[string]string{}
	for _, f := range s.fields() {
		env[f.name] = *f.value
	}
	return env
}

// LogValue keeps secrets out of logs.
func (s Secrets) LogValue() slog.Value { return slog.StringValue("(secret)") }

// String keeps secrets out of texts.
func (s Secrets) String() string { return "(secret)" }

type secretField struct {
	name  string
	value *string
}

func (s *Secrets) fields() []secretField {
	return []secretField{
		{"ADMIN_AUTH_SECRET", &s.Admin},
		{"AUTH_SECRET", &s.Ingest},
		{"DATABASE_PASSWORD", &s.DatabasePassword},
	}
}

// secretsFile is their name in the data folder.
const secretsFile = "secrets.env"

// ReadSecrets returns the secrets of a data folder that was started before.
func ReadSecrets(dir string) (Secrets, error) {
	var s Secrets
	text, err := os.ReadFile(filepath.Join(dir, secretsFile))
	if err != nil {
		return s, fmt.Errorf("read secrets of the data folder: %w", err)
	}
	s.take(text)
	return s, nil
}

// take reads what text says of each secret; the others become "".
func (s *Secrets) take(text []byte) {
	known := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			known[name] = value
		}
	}
	for _, f := range s.fields() {
		*f.value = known[f.name]
	}
}

// loadSecrets reads the file, generates what it lacks and writes it back
// before anything can depend on it. One file serves a shell's `source` too.
func loadSecrets(file string) (Secrets, error) {
	var s Secrets
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return s, fmt.Errorf("load secrets: %w", err)
	}
	s.take(text)
	var out strings.Builder
	complete := true
	for _, f := range s.fields() {
		if *f.value == "" {
			*f.value, complete = rand.Text()+rand.Text(), false
		}
		fmt.Fprintf(&out, "%s=%s\n", f.name, *f.value)
	}
	if complete {
		return s, nil
	}
	if err := writeFile(file, []byte(out.String())); err != nil {
		return s, fmt.Errorf("write secrets: %w", err)
	}
	return s, nil
}
