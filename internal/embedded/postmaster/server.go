package postmaster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Mode is how a server is told to end.
type Mode int

const (
	// Fast ends sessions, rolls their transactions back and writes a checkpoint.
	Fast Mode = iota
	// Immediate ends at once, as a crash does; the next start recovers.
	Immediate
)

// signal is what the postmaster takes for each mode.
func (m Mode) signal() syscall.Signal {
	if m == Immediate {
		return syscall.SIGQUIT
	}
	return syscall.SIGINT
}

// Server is a running PostgreSQL server that this process started.
type Server struct {
	cluster Cluster
	process *os.Process
	ended   chan struct{} // closed after the process was waited for
	err     error         // how it ended; read after ended
}

// pollEvery is how often the server's own status line is read while it starts.
const pollEvery = 5 * time.Millisecond

// Start starts the server on an initialised data directory and returns when it
// accepts connections. A server that an earlier process left on the directory
// is ended first. When this process dies in whatever way, the kernel (on Linux)
// ends the server: fast, with a checkpoint.
func (c Cluster) Start(ctx context.Context) (*Server, error) {
	if err := EndOrphan(ctx, c.DataDir); err != nil {
		return nil, err
	}
	for {
		s, err := c.launch()
		if err != nil {
			return nil, err
		}
		err = s.await(ctx)
		if err == nil {
			return s, nil
		}
		if !errors.Is(err, errStillHeld) {
			return nil, err
		}
	}
}

func (c Cluster) launch() (*Server, error) {
	log, err := os.OpenFile(c.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start postgresql: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(c.Binaries.Dir, "postgres"), c.arguments()...) //nolint:noctx // it outlives the start
	cmd.Dir = "/"
	cmd.Env = environment()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = c.Account.attributes()
	dieWithParent(cmd.SysProcAttr)

	s := &Server{cluster: c, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel's "parent" is the thread that forked: it has to live as
		// long as the server does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		s.process = cmd.Process
		started <- err
		if err == nil {
			s.err = cmd.Wait()
			close(s.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start postgresql: %w", err)
	}
	return s, nil
}

// errStillHeld is a start that came before the processes of a killed server
// let go of its shared memory; they do within moments.
var errStillHeld = errors.New("shared memory of the previous server is still in use")

// await returns when the server accepts connections, or with the end of its
// log when it ended instead.
func (s *Server) await(ctx context.Context) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			s.process.Signal(syscall.SIGQUIT) //nolint:errcheck // it may be gone
			<-s.ended
			return fmt.Errorf("start postgresql: %w", context.Cause(ctx))
		case <-s.ended:
			tail := logTail(s.cluster.LogFile)
			if strings.Contains(tail, "is still in use") {
				return errStillHeld
			}
			return fmt.Errorf("start postgresql: it ended: %w; its log %s ends: %s", errors.Join(s.err), s.cluster.LogFile, tail)
		case <-tick.C:
			if p, err := readPidFile(s.cluster.DataDir); err == nil && p.pid == s.process.Pid && p.status == "ready" {
				return nil
			}
		}
	}
}

// PID is the process id of the postmaster.
func (s *Server) PID() int { return s.process.Pid }

// Ended is closed when the server ended, whoever ended it.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// Stop ends the server and waits until it is gone. A fast stop that is not
// through when ctx ends becomes an immediate one: nothing committed is lost,
// the next start recovers it.
func (s *Server) Stop(ctx context.Context, mode Mode) error {
	if err := s.process.Signal(mode.signal()); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop postgresql: %w", err)
	}
	select {
	case <-s.ended:
		return nil
	case <-ctx.Done():
	}
	if err := s.process.Signal(Immediate.signal()); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop postgresql: %w", err)
	}
	<-s.ended
	return nil
}

// logTail is the last 1,000 bytes of a log, on one line.
func logTail(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	text = text[max(0, len(text)-1000):]
	return strings.Join(strings.Fields(string(text)), " ")
}
