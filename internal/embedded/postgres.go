package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"appliance/internal/embedded/postmaster"
)

// postgresServer is the child and how to reach it.
type postgresServer struct {
	cluster postmaster.Cluster
	server  *postmaster.Server
}

// orphanWithin bounds the wait for a server that a killed process left and
// that writes its last checkpoint.
const orphanWithin = 30 * time.Second

func startPostgres(ctx context.Context, f *folder, password string, o Options, out *lines) (*postgresServer, error) {
	account, err := postmaster.For(os.Geteuid(), filepath.Join(f.postgresHome(), "data"))
	if err != nil {
		return nil, fmt.Errorf("start embedded postgresql: %w", err)
	}
	home, err := placePostgres(ctx, f, account, out)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(home, "data")
	binaries, err := findBinaries(ctx, data, o, out)
	if err != nil {
		return nil, err
	}
	// The orphan goes first: it may hold the remembered port.
	if err := endOrphan(ctx, data); err != nil {
		return nil, fmt.Errorf("start embedded postgresql: %w", err)
	}
	port, err := choosePort(ctx, f.remembered().PostgresPort, out)
	if err != nil {
		return nil, err
	}
	cluster := postmaster.Cluster{
		Binaries: binaries, Account: account, DataDir: data, LogFile: f.path("postgres.log"),
		Port: port, Password: password, Settings: settings(),
	}
	if err := cluster.Init(ctx); err != nil {
		return nil, fmt.Errorf("start embedded postgresql: %w", err)
	}
	server, err := cluster.Start(ctx)
	if err != nil {
		return nil, fmt.Errorf("start embedded postgresql: %w", err)
	}
	p := &postgresServer{cluster: cluster, server: server}
	if err := f.remember(func(n *notes) { n.PostgresPort = port }); err != nil {
		return nil, errors.Join(err, p.close(context.WithoutCancel(ctx)))
	}
	return p, nil
}

// choosePort returns the remembered port if it is free, else another.
func choosePort(ctx context.Context, remembered int, out *lines) (int, error) {
	if remembered != 0 && postmaster.PortFree(ctx, remembered) {
		return remembered, nil
	}
	port, err := postmaster.FreePort(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("choose a port for PostgreSQL: %w", err)
	}
	if remembered != 0 {
		out.printf(moved, "PostgreSQL", remembered, port)
	}
	return port, nil
}

// settings are for one machine with one user. Nothing here weakens durability:
// fsync, full_page_writes and synchronous_commit keep their defaults, on.
func settings() []string {
	return []string{
		"shared_buffers=128MB",
		"max_wal_size=2GB", // fewer checkpoints during a bulk load
		"jit=off",          // costs more than it saves on short statements
	}
}

func endOrphan(ctx context.Context, data string) error {
	ctx, cancel := context.WithTimeout(ctx, orphanWithin)
	defer cancel()
	return postmaster.EndOrphan(ctx, data)
}

// findBinaries takes the machine's newest PostgreSQL for a new data directory,
// and the directory's own major version for an old one, since others refuse it.
func findBinaries(ctx context.Context, data string, o Options, out *lines) (postmaster.Binaries, error) {
	major, err := postmaster.Major(data)
	if err != nil {
		return postmaster.Binaries{}, fmt.Errorf("start embedded postgresql: %w", err)
	}
	b, err := postmaster.Find(ctx, o.Path, major)
	if !errors.Is(err, postmaster.ErrNoBinaries) {
		return b, err
	}
	b, fetchErr := postmaster.Fetch(ctx, postmaster.CacheDir(os.Geteuid(), o.UserCache), major, out)
	if fetchErr != nil {
		return b, fmt.Errorf("start embedded postgresql: %w: install PostgreSQL %d or newer (Debian: apt-get install postgresql)",
			errors.Join(err, fetchErr), max(major, postmaster.OldestMajor))
	}
	return b, nil
}

func (p *postgresServer) url() string { return p.cluster.URL() }

func (p *postgresServer) close(ctx context.Context) error {
	if err := p.server.Stop(ctx, postmaster.Fast); err != nil {
		return fmt.Errorf("stop embedded postgresql: %w", err)
	}
	return nil
}
