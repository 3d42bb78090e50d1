package testservices

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"appliance/internal/embedded/postmaster"
)

// PostgresServer is a PostgreSQL server of a test's own, which may crash it. It
// ends with the test, at the latest with the test process.
type PostgresServer struct {
	URL     string // a superuser's database; the same after every Start
	t       testing.TB
	cluster postmaster.Cluster
	server  *postmaster.Server
}

// StartPostgres starts a server with a port and a data directory of its own;
// as root, it runs as an unprivileged user. Settings are "name=value" lines.
func StartPostgres(t testing.TB, settings ...string) *PostgresServer {
	t.Helper()
	return StartPostgresVersion(t, 0, settings...)
}

// StartPostgresVersion is StartPostgres with a certain major version, 15 to
// 18, which is fetched if this machine has another; 0 is what it has.
func StartPostgresVersion(t testing.TB, major int, settings ...string) *PostgresServer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), fetchPatience)
	defer cancel()
	cluster, err := NewCluster(ctx, major, settings, os.Stderr)
	if err != nil {
		t.Fatalf("start postgres: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(filepath.Dir(cluster.DataDir)) })
	p := &PostgresServer{URL: cluster.URL(), t: t, cluster: cluster}
	t.Cleanup(func() { p.Stop(true) })
	p.Start()
	return p
}

// fetchPatience is for a start that may have to download binaries first.
const fetchPatience = 5 * time.Minute

// Start starts the server again, on the same port and data.
func (p *PostgresServer) Start() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	server, err := p.cluster.Start(ctx)
	if err != nil {
		p.t.Fatalf("start postgres: %v", err)
	}
	p.server = server
}

// Stop ends the server: immediately, as a crash does, or in order. It does
// nothing when the server is down.
func (p *PostgresServer) Stop(immediate bool) {
	p.t.Helper()
	if p.server == nil {
		return
	}
	mode := postmaster.Fast
	if immediate {
		mode = postmaster.Immediate
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.server.Stop(ctx, mode); err != nil {
		p.t.Fatalf("stop postgres: %v", err)
	}
	p.server = nil
}

// NewCluster initialises a data directory in a new temporary folder, its
// parent, with binaries of this machine or else fetched ones; major 0 is any
// version. Progress goes to out.
func NewCluster(ctx context.Context, major int, settings []string, out io.Writer) (postmaster.Cluster, error) {
	none := postmaster.Cluster{}
	binaries, err := postmaster.Find(ctx, os.Getenv("PATH"), major)
	if errors.Is(err, postmaster.ErrNoBinaries) {
		if binaries, err = fetched(ctx, major, out); err != nil {
			return none, fmt.Errorf("%w: install PostgreSQL %d or newer (Debian: apt-get install postgresql)", err, postmaster.OldestMajor)
		}
	}
	if err != nil {
		return none, err
	}
	account, err := postmaster.Unprivileged(os.Geteuid())
	if err != nil {
		return none, err
	}
	port, err := postmaster.FreePort(ctx, nil)
	if err != nil {
		return none, err
	}
	// Not below the test's own folder: as root, the account could not reach it.
	home := filepath.Join(os.TempDir(), unique("appliance-test-postgres-"))
	if err := account.MkdirAll(home); err != nil {
		return none, err
	}
	cluster := postmaster.Cluster{
		Binaries: binaries,
		Account:  account,
		DataDir:  filepath.Join(home, "data"),
		LogFile:  filepath.Join(home, "log"),
		Port:     port,
		Password: rand.Text(),
		Settings: append([]string{"max_connections=200"}, settings...),
	}
	if err := cluster.Init(ctx); err != nil {
		os.RemoveAll(home)
		return none, err
	}
	return cluster, nil
}

// fetched keeps downloaded binaries where the next process finds them.
func fetched(ctx context.Context, major int, out io.Writer) (postmaster.Binaries, error) {
	home, err := os.UserCacheDir()
	if err != nil {
		return postmaster.Binaries{}, fmt.Errorf("find cache folder: %w", err)
	}
	return postmaster.Fetch(ctx, postmaster.CacheDir(os.Geteuid(), home), major, out)
}
