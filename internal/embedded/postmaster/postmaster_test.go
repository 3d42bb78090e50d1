package postmaster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheMajorVersionIsReadFromWhatPostgresSays(t *testing.T) {
	for _, c := range []struct {
		says  string
		major int
		ok    bool
	}{
		{"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", 15, true},
		{"postgres (PostgreSQL) 18beta1\n", 18, true},
		{"postgres (EnterpriseDB) 15.1", 0, false},
		{"", 0, false},
	} {
		major, err := parseMajor(c.says)
		if major != c.major || (err == nil) != c.ok {
			t.Errorf("%q: %d, %v", c.says, major, err)
		}
	}
}

// installation is a folder that looks like PostgreSQL of a major version.
func installation(t *testing.T, major int) string {
	t.Helper()
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\necho 'postgres (PostgreSQL) %d.1'\n", major)
	for _, name := range []string{"postgres", "initdb"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTheVersionAskedForIsFoundAndNoOther(t *testing.T) {
	path := strings.Join([]string{installation(t, 13), installation(t, 16), installation(t, 19)}, string(filepath.ListSeparator))
	b, err := Find(t.Context(), path, 16)
	if err != nil || b.Major != 16 {
		t.Errorf("asked for 16: %v, %v", b, err)
	}
	b, err = Find(t.Context(), path, 0)
	if err != nil || b.Major < OldestMajor || b.Major > NewestMajor {
		t.Errorf("asked for any: %v, %v; 13 and 19 are not supported", b, err)
	}
	if _, err := Find(t.Context(), "", 11); !errors.Is(err, ErrNoBinaries) {
		t.Errorf("asked for 11: %v", err)
	}
}

func TestASearchThatIsGivenUpFindsNeitherNorNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Find(ctx, "", 0); !errors.Is(err, context.Canceled) || errors.Is(err, ErrNoBinaries) {
		t.Errorf("error: %v", err)
	}
}

func TestFetchedBinariesAreNotFetchedAgain(t *testing.T) {
	cache := t.TempDir()
	home := filepath.Join(cache, "postgresql-"+string(versions()[0]))
	if err := os.MkdirAll(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(installation(t, NewestMajor), filepath.Join(home, "bin")); err != nil {
		t.Fatal(err)
	}
	b, err := Fetch(t.Context(), cache, 0, io.Discard)
	if err != nil || b.Major != NewestMajor {
		t.Errorf("fetched: %v, %v", b, err)
	}
	if _, err := Fetch(t.Context(), cache, 11, io.Discard); !errors.Is(err, ErrNoBinaries) {
		t.Errorf("asked for 11: %v", err)
	}
}

// cluster is a data directory that is not initialised yet.
func cluster(t *testing.T) Cluster {
	t.Helper()
	binaries, err := Find(t.Context(), os.Getenv("PATH"), 0)
	if errors.Is(err, ErrNoBinaries) {
		cache, cacheErr := os.UserCacheDir()
		if cacheErr != nil {
			t.Fatal(cacheErr)
		}
		binaries, err = Fetch(t.Context(), CacheDir(os.Geteuid(), cache), 0, t.Output())
	}
	if err != nil {
		t.Fatal(err)
	}
	account, err := Unprivileged(os.Geteuid())
	if err != nil {
		t.Fatal(err)
	}
	port, err := FreePort(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp("", "postmaster-test-") //nolint:usetesting // the test's own folder is closed to the account
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	if err := account.MkdirAll(home); err != nil {
		t.Fatal(err)
	}
	return Cluster{
		Binaries: binaries, Account: account, DataDir: filepath.Join(home, "data"),
		LogFile: filepath.Join(home, "log"), Port: port, Password: "secret", Settings: []string{"fsync=off"},
	}
}

func TestAnInterruptedInitIsBegunAgain(t *testing.T) {
	c := cluster(t)
	if err := os.MkdirAll(filepath.Join(c.DataDir+".part", "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := c.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	if major, err := Major(c.DataDir); err != nil || major != c.Binaries.Major {
		t.Errorf("data directory of version %d, %v", major, err)
	}
}

func TestAStaleFileThatNamesSomeoneElseIsNotBelieved(t *testing.T) {
	c := cluster(t)
	if err := c.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The number now belongs to this very process.
	file := filepath.Join(c.DataDir, "postmaster.pid")
	if err := os.WriteFile(file, fmt.Appendf(nil, "%d\n%s\n", os.Getpid(), c.DataDir), 0o600); err != nil {
		t.Fatal(err)
	}
	if c.Account.Other {
		if err := os.Chown(file, int(c.Account.UID), int(c.Account.GID)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := c.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(t.Context(), Fast); err != nil {
		t.Fatal(err)
	}
}

func TestAServerWhosePostmasterWasKilledStartsAgain(t *testing.T) {
	c := cluster(t)
	if err := c.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := c.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("kill", "-KILL", strconv.Itoa(s.PID())).Run(); err != nil {
		t.Fatal(err)
	}
	<-s.Ended()
	again, err := c.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Stop(t.Context(), Immediate); err != nil {
		t.Fatal(err)
	}
}

func TestAStartThatCannotSucceedSaysWhatTheServerSaid(t *testing.T) {
	c := cluster(t)
	if err := c.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Settings = []string{"no_such_setting=1"}
	_, err := c.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("error: %v", err)
	}
}

func TestAStartThatIsGivenUpLeavesNoServer(t *testing.T) {
	c := cluster(t)
	if err := c.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Start(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error: %v", err)
	}
	if !PortFree(t.Context(), c.Port) {
		t.Error("a server still listens")
	}
}

func TestAPortInUseIsNotFree(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	if PortFree(t.Context(), taken) {
		t.Errorf("port %d is in use, and free", taken)
	}
	if _, err := FreePort(t.Context(), func(int) int { return taken - lowestPort }); !errors.Is(err, ErrNoPort) {
		t.Errorf("no port can be had, and yet: %v", err)
	}
}

func TestAFreePortIsBelowThoseOfOutgoingConnections(t *testing.T) {
	port, err := FreePort(t.Context(), nil)
	if err != nil || port < lowestPort || port > highestPort {
		t.Errorf("port %d, %v", port, err)
	}
}
