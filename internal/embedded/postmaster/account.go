package postmaster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// Account is the operating system's user that a server runs as. The zero value
// is the user who runs this process.
type Account struct {
	Name     string
	UID, GID uint32
	Other    bool // another user than this process's
}

// Unprivileged chooses the account for a process with this effective user id:
// itself, or, as root, the first of postgres and nobody that exists, because
// PostgreSQL refuses to run as root.
func Unprivileged(euid int) (Account, error) {
	if euid != 0 {
		return Account{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return Account{}, fmt.Errorf("parse user id of %s: %w", name, err)
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return Account{}, fmt.Errorf("parse group id of %s: %w", name, err)
		}
		return Account{Name: name, UID: uint32(uid), GID: uint32(gid), Other: true}, nil
	}
	return Account{}, errors.New("choose an account for postgresql: there is neither a user postgres nor nobody; PostgreSQL refuses to run as root")
}

// For chooses the account for a data directory: as root its owner, where it
// exists already (a user's folder stays the user's), else as Unprivileged does.
func For(euid int, dataDir string) (Account, error) {
	info, err := os.Stat(dataDir)
	if err != nil || euid != 0 {
		return Unprivileged(euid)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || owner.Uid == 0 {
		return Unprivileged(euid)
	}
	name := strconv.FormatUint(uint64(owner.Uid), 10)
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	return Account{Name: name, UID: owner.Uid, GID: owner.Gid, Other: true}, nil
}

// attributes makes a command run as the account, in a process group of its
// own: a Ctrl-C at the terminal reaches only us, and we end the server in order.
func (a Account) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if a.Other {
		attr.Credential = &syscall.Credential{Uid: a.UID, Gid: a.GID, Groups: []uint32{a.GID}}
	}
	return attr
}

// MkdirAll makes dir with mode 0700, owned by the account. Parents that are
// missing are made too and stay ours, passable for everyone.
func (a Account) MkdirAll(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make directory: %w", err)
	}
	if !a.Other {
		return nil
	}
	if err := os.Chown(dir, int(a.UID), int(a.GID)); err != nil {
		return fmt.Errorf("give directory to %s: %w", a.Name, err)
	}
	return nil
}

// Reaches reports whether the account can enter dir: every folder above must
// let it pass. The kernel is asked, as modes alone do not tell (mount options,
// access control lists).
func (a Account) Reaches(ctx context.Context, dir string) bool {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", `cd "$1"`, "sh", dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = a.attributes()
	return cmd.Run() == nil
}
