package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// child is the program under measurement, as a process of its own.
type child struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it is gone
	err   error         // of its end; to be read after ended
	words *tail
}

// startChild starts the program. When ctx ends it gets SIGTERM, and half a minute later SIGKILL.
func startChild(ctx context.Context, program []string, environ []string) (*child, error) {
	c := &child{ended: make(chan struct{}), words: &tail{}}
	c.cmd = exec.CommandContext(ctx, program[0], program[1:]...)
	c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = environ, c.words, c.words
	c.cmd.Cancel = func() error { return c.cmd.Process.Signal(syscall.SIGTERM) }
	c.cmd.WaitDelay = 30 * time.Second
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", strings.Join(program, " "), err)
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	return c, nil
}

// failed is why it ended before it should have, with its last words.
func (c *child) failed() error {
	cause := c.err
	if cause == nil {
		cause = errors.New("it ended by itself")
	}
	return fmt.Errorf("the program ended early: %w\n%s", cause, c.words.text())
}

// peakRSS is the most memory that it has held, in bytes, as the kernel counts it; 0 where there is no /proc.
func (c *child) peakRSS() int64 {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(c.cmd.Process.Pid) + "/status")
	if err != nil {
		return 0
	}
	return highWater(status)
}

// highWater reads VmHWM, which is in units of 1,024 bytes.
func highWater(status []byte) int64 {
	for line := range bytes.Lines(status) {
		if value, found := bytes.CutPrefix(line, []byte("VmHWM:")); found {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(string(value)), "kB")), 10, 64)
			if err != nil {
				return 0
			}
			return n << 10
		}
	}
	return 0
}

// drain sends SIGTERM and waits for the end, which has to be a good one.
func (c *child) drain() error {
	if err := c.terminate(); err != nil {
		return err
	}
	if c.err != nil {
		return fmt.Errorf("the program did not drain well: %w\n%s", c.err, c.words.text())
	}
	return nil
}

// drainWithin is more than a drain may take by the program's own rules.
const drainWithin = time.Minute

// terminate asks it to end, and kills it where it doesn't: a member that was killed stays in its group until the session
// times out, and the group could not be removed. It does nothing where it has ended.
func (c *child) terminate() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop the program: %w", err)
	}
	late := time.NewTimer(drainWithin)
	defer late.Stop()
	select {
	case <-c.ended:
		return nil
	case <-late.C:
	}
	c.cmd.Process.Kill() //nolint:errcheck // it may be gone by now
	<-c.ended
	return fmt.Errorf("the program did not drain within %s\n%s", drainWithin, c.words.text())
}

// tail keeps the last words of a process.
type tail struct {
	mu   sync.Mutex
	last []byte
}

const tailBytes = 8 << 10

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, p...)
	if over := len(t.last) - tailBytes; over > 0 {
		t.last = append(t.last[:0], t.last[over:]...)
	}
	return len(p), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.last)
}
