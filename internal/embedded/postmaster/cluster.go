package postmaster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// Superuser is the role that Init creates.
const Superuser = "appliance"

// Cluster is one data directory and how its server runs: on 127.0.0.1 only,
// with scram passwords.
type Cluster struct {
	Binaries Binaries
	Account  Account
	DataDir  string   // absolute; its parent exists and the account reaches it
	LogFile  string   // the server's log, appended to
	Port     int      // on 127.0.0.1
	Password string   // of Superuser; set by Init, unknown to the server later
	Settings []string // "name=value", for the server's command line
}

// Major returns the major version of the data directory, 0 if it is not
// initialised.
func Major(dataDir string) (int, error) {
	text, err := os.ReadFile(filepath.Join(dataDir, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read version of data directory: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("read version of data directory: %w", err)
	}
	return major, nil
}

// URL is where the cluster's database `postgres` is reached, as psql takes it.
func (c Cluster) URL() string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(Superuser, c.Password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Port)),
		Path:     "/postgres",
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Init initialises the data directory, unless it is already. A directory that
// an interrupted Init left behind is emptied first: initdb refuses it.
func (c Cluster) Init(ctx context.Context) error {
	major, err := Major(c.DataDir)
	if err != nil {
		return err
	}
	if major != 0 {
		return nil
	}
	// initdb works on a folder beside, which gets its name when it is complete.
	part := c.DataDir + ".part"
	if err := os.RemoveAll(part); err != nil {
		return fmt.Errorf("init postgresql: %w", err)
	}
	if err := c.Account.MkdirAll(part); err != nil {
		return fmt.Errorf("init postgresql: %w", err)
	}
	if err := c.initdb(ctx, part); err != nil {
		return err
	}
	if err := os.Rename(part, c.DataDir); err != nil {
		return fmt.Errorf("init postgresql: %w", err)
	}
	return nil
}

func (c Cluster) initdb(ctx context.Context, dir string) error {
	passwords, err := os.CreateTemp(filepath.Dir(c.DataDir), "initdb-")
	if err != nil {
		return fmt.Errorf("init postgresql: %w", err)
	}
	defer os.Remove(passwords.Name())
	_, err = passwords.WriteString(c.Password + "\n")
	if err := errors.Join(err, passwords.Close()); err != nil {
		return fmt.Errorf("init postgresql: %w", err)
	}
	if c.Account.Other {
		if err := os.Chown(passwords.Name(), int(c.Account.UID), int(c.Account.GID)); err != nil {
			return fmt.Errorf("init postgresql: %w", err)
		}
	}
	args := []string{
		"-D", dir, "-U", Superuser, "-A", "scram-sha-256", "--pwfile=" + passwords.Name(),
		"-E", "UTF8", "--locale=C",
	}
	if runtime.GOOS == "linux" { // upper and lower case beyond ASCII
		args = append(args, "--lc-ctype=C.UTF-8")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(c.Binaries.Dir, "initdb"), args...)
	cmd.Dir = "/"
	cmd.Env = environment()
	cmd.SysProcAttr = c.Account.attributes()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("init postgresql: initdb: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// environment keeps PG… variables of the caller away from the server, and its
// messages in English.
func environment() []string {
	return []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
}

func (c Cluster) arguments() []string {
	args := []string{"-D", c.DataDir}
	for _, s := range append([]string{
		"listen_addresses=127.0.0.1",
		"port=" + strconv.Itoa(c.Port),
		"unix_socket_directories=",
		"logging_collector=off",
		"log_destination=stderr",
	}, c.Settings...) {
		args = append(args, "-c", s)
	}
	return args
}
