// Package postmaster runs a PostgreSQL server of one's own: it finds the
// binaries, initialises a data directory, starts the server as a user that
// PostgreSQL accepts, and ends it. Nothing here speaks SQL.
package postmaster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// The major versions of PostgreSQL that the migrations are written for.
const (
	OldestMajor = 15
	NewestMajor = 18
)

// ErrNoBinaries says that no usable PostgreSQL server is on this machine.
var ErrNoBinaries = errors.New("no PostgreSQL server binaries on this machine")

// Binaries is one installation of the PostgreSQL server: the directory that
// holds initdb and postgres, and its major version.
type Binaries struct {
	Dir   string
	Major int
}

// Find returns the newest installation of a supported major version among the
// directories of path (as $PATH is written) and the places where packages put
// PostgreSQL. A major other than 0 asks for exactly that version, as a data
// directory does. It returns ErrNoBinaries when there is none.
func Find(ctx context.Context, path string, major int) (Binaries, error) {
	dirs := filepath.SplitList(path)
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",            // Debian
		"/usr/pgsql-*/bin",                     // the PostgreSQL project's RPMs
		"/usr/local/pgsql/bin",                 // built from source
		"/opt/homebrew/opt/postgresql@*/bin",   // macOS on ARM
		"/usr/local/opt/postgresql@*/bin",      // macOS on Intel
		"/usr/libexec/postgresql*",             // Alpine
		"/Library/PostgreSQL/*/bin",            // the installer for macOS
		"/Applications/Postgres.app/*/*/*/bin", // Postgres.app
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return Binaries{}, fmt.Errorf("find postgresql in %s: %w", pattern, err)
		}
		dirs = append(dirs, found...)
	}
	var best Binaries
	for _, dir := range dirs {
		b, err := inspect(ctx, dir)
		if err != nil || !wanted(b.Major, major) {
			continue
		}
		if b.Major > best.Major {
			best = b
		}
	}
	if err := ctx.Err(); err != nil { // nobody was asked; that is no answer
		return Binaries{}, fmt.Errorf("find postgresql: %w", err)
	}
	if best.Dir == "" {
		return Binaries{}, ErrNoBinaries
	}
	return best, nil
}

func wanted(found, major int) bool {
	if major != 0 {
		return found == major
	}
	return found >= OldestMajor && found <= NewestMajor
}

// inspect follows links: initdb looks for its share directory relative to
// where it really lies.
func inspect(ctx context.Context, dir string) (Binaries, error) {
	program, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
	if err != nil {
		return Binaries{}, err
	}
	dir = filepath.Dir(program)
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return Binaries{}, err
	}
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return Binaries{}, fmt.Errorf("ask %s for its version: %w", program, err)
	}
	major, err := parseMajor(string(out))
	if err != nil {
		return Binaries{}, err
	}
	return Binaries{Dir: dir, Major: major}, nil
}

// parseMajor reads "postgres (PostgreSQL) 15.18 (Debian …)".
func parseMajor(version string) (int, error) {
	m := regexp.MustCompile(`\(PostgreSQL\) (\d+)`).FindStringSubmatch(version)
	if m == nil {
		return 0, fmt.Errorf("parse version %q: no PostgreSQL version", strings.TrimSpace(version))
	}
	return strconv.Atoi(m[1])
}

// Fetch returns binaries kept under cache, downloading them the first time
// (about 30 MB). major 0 means the newest one. cache must be reachable for the
// account that the server will run as.
func Fetch(ctx context.Context, cache string, major int, out io.Writer) (Binaries, error) {
	versions := versions()
	i := slices.IndexFunc(versions, func(v embeddedpostgres.PostgresVersion) bool {
		return major == 0 || strings.HasPrefix(string(v), strconv.Itoa(major)+".")
	})
	if i < 0 {
		return Binaries{}, fmt.Errorf("fetch postgresql %d: %w", major, ErrNoBinaries)
	}
	home := filepath.Join(cache, "postgresql-"+string(versions[i]))
	if b, err := inspect(ctx, filepath.Join(home, "bin")); err == nil {
		return b, nil
	}
	fmt.Fprintf(out, "fetching PostgreSQL %s into %s\n", versions[i], home)
	defer http.DefaultClient.CloseIdleConnections() // the library downloads with it, and would leave its connection open
	if err := unpack(ctx, home, versions[i]); err != nil {
		return Binaries{}, fmt.Errorf("fetch postgresql %s: %w", versions[i], err)
	}
	b, err := inspect(ctx, filepath.Join(home, "bin"))
	if err != nil {
		return Binaries{}, fmt.Errorf("fetch postgresql %s: %w", versions[i], err)
	}
	return b, nil
}

// versions are the ones that can be fetched, the newest first.
func versions() []embeddedpostgres.PostgresVersion {
	return []embeddedpostgres.PostgresVersion{
		embeddedpostgres.V18, embeddedpostgres.V17, embeddedpostgres.V16, embeddedpostgres.V15,
	}
}

// unpack lets the library download, verify and unpack. It offers that only as
// the first part of a start, so a throw-away server is asked for: whether that
// one comes up does not matter (as root it never does), what it unpacked does.
func unpack(ctx context.Context, home string, version embeddedpostgres.PostgresVersion) error {
	scratch, err := os.MkdirTemp("", "postgresql-fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	port, err := FreePort(ctx, nil)
	if err != nil {
		return err
	}
	server := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(version).Port(uint32(port)).Logger(io.Discard).
		CachePath(scratch).BinariesPath(home).
		RuntimePath(filepath.Join(scratch, "run")).DataPath(filepath.Join(scratch, "data")))
	startErr := server.Start()
	if startErr == nil {
		return server.Stop()
	}
	if _, err := os.Stat(filepath.Join(home, "bin", "postgres")); err != nil {
		return startErr
	}
	return nil
}

// CacheDir is where Fetch keeps binaries for a process with this effective
// user id: below userCache (os.UserCacheDir), or, as root, in a system folder,
// because root's own is closed to the account that the server runs as.
func CacheDir(euid int, userCache string) string {
	if euid == 0 {
		return "/var/cache/appliance"
	}
	return filepath.Join(userCache, "appliance")
}
