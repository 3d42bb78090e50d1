package postmaster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// pidFile is what postmaster.pid tells: the postmaster and, since PostgreSQL
// 10, its status on line 8.
type pidFile struct {
	pid    int
	status string
}

func readPidFile(dataDir string) (pidFile, error) {
	text, err := os.ReadFile(filepath.Join(dataDir, "postmaster.pid"))
	if err != nil {
		return pidFile{}, err
	}
	lines := strings.Split(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil {
		return pidFile{}, fmt.Errorf("read postmaster.pid: %w", err)
	}
	p := pidFile{pid: pid}
	if len(lines) > 7 {
		p.status = strings.TrimSpace(lines[7])
	}
	return p, nil
}

// EndOrphan ends the server that a killed process left on the data directory,
// fast, and waits for it. The process id is believed only if that process is a
// server on this very directory: after a crash the number may be another's.
// Then the stale file is removed, which PostgreSQL itself would not dare.
func EndOrphan(ctx context.Context, dataDir string) error {
	p, err := readPidFile(dataDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !alive(p.pid) {
		return nil // PostgreSQL sees that itself, and checks its shared memory too
	}
	if !serves(ctx, p.pid, dataDir) {
		if err := os.Remove(filepath.Join(dataDir, "postmaster.pid")); err != nil {
			return fmt.Errorf("remove stale postmaster.pid: %w", err)
		}
		return nil
	}
	if err := syscall.Kill(p.pid, Fast.signal()); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("end orphaned postgresql %d: %w", p.pid, err)
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for alive(p.pid) && serves(ctx, p.pid, dataDir) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("end orphaned postgresql %d: %w", p.pid, context.Cause(ctx))
		case <-tick.C:
		}
	}
	return nil
}

// alive: a process of another user is alive too.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// serves reports whether the process is a postmaster on dataDir: it works in
// that directory. Where there is no /proc, its command line has to name it.
func serves(ctx context.Context, pid int, dataDir string) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	if _, err := os.Stat("/proc/self"); err != nil {
		out, err := exec.CommandContext(ctx, "ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
		return err == nil && strings.Contains(string(out), dataDir)
	}
	cwd, err := os.Readlink(filepath.Join(proc, "cwd"))
	if err != nil {
		return false
	}
	resolved, err := filepath.EvalSymlinks(dataDir)
	return err == nil && cwd == resolved
}
