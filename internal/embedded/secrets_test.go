package embedded

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func occupy(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestSecretsAreGeneratedOnceAndKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secrets.env")
	first, err := loadSecrets(file)
	if err != nil {
		t.Fatal(err)
	}
	if first.Admin == first.Ingest || len(first.Admin) < 26 || first.DatabasePassword == "" {
		t.Error("secrets are missing, short or alike")
	}
	second, err := loadSecrets(file)
	if err != nil || second != first {
		t.Errorf("second load differs (%v)", err)
	}
}

func TestASecretThatTheFileLacksIsAddedAndTheOthersStay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secrets.env")
	if err := os.WriteFile(file, []byte("ADMIN_AUTH_SECRET=chosen by hand\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := loadSecrets(file)
	if err != nil || s.Admin != "chosen by hand" || s.Ingest == "" {
		t.Errorf("admin %q, ingest %q, %v", s.Admin, s.Ingest, err)
	}
	if s.Environment()["AUTH_SECRET"] != s.Ingest {
		t.Error("the environment lacks a secret")
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	s := Secrets{Admin: "visible"}
	for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%v %+v %s", s, s, s), s.LogValue().String()} {
		if strings.Contains(text, "visible") {
			t.Errorf("printed: %s", text)
		}
	}
}
