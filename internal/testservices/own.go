package testservices

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// holder is the services that this test process started because the
// environment names none. Each runs under a `with -hold` process that ends it
// as soon as our end of its standard input closes, in whatever way we end.
type holder struct {
	mu    sync.Mutex
	held  map[string]held
	stdin []*os.File // kept open, and from the garbage collector
}

type held struct {
	address string
	err     error
}

var own holder //nolint:gochecknoglobals // the services live as long as the process, as the tests of a package share them

// address starts the service on first use. A failure is remembered: what could
// not start once costs every other test no second wait.
func (h *holder) address(service, variable string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known, ok := h.held[service]; ok {
		return known.address, known.err
	}
	address, err := h.hold(service, variable)
	if h.held == nil {
		h.held = map[string]held{}
	}
	h.held[service] = held{address, err}
	return address, err
}

// hold starts `with -hold` and reads the one line it prints. It uses files and
// never waits for the process, so that no goroutine stays for a leak check.
func (h *holder) hold(service, variable string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return "", fmt.Errorf("hold %s: %w", service, err)
	}
	stdin, keep, err := os.Pipe()
	if err != nil {
		return "", fmt.Errorf("hold %s: %w", service, err)
	}
	trouble, err := os.CreateTemp("", "test-"+service+"-")
	if err != nil {
		return "", fmt.Errorf("hold %s: %w", service, err)
	}
	defer os.Remove(trouble.Name())
	cmd := exec.Command("go", "run", "./internal/testservices/with", "-hold", "-services", service)
	cmd.Dir = root
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, theirs, trouble
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("hold %s: %w", service, err)
	}
	stdin.Close()
	theirs.Close()
	h.stdin = append(h.stdin, keep)
	line, err := bufio.NewReader(ours).ReadString('\n')
	ours.Close()
	address, ok := strings.CutPrefix(strings.TrimSpace(line), variable+"=")
	if err != nil || !ok {
		trouble.Seek(0, io.SeekStart) //nolint:errcheck // a plain file
		said, _ := io.ReadAll(trouble)
		return "", fmt.Errorf("hold %s: %s", service, said)
	}
	return address, nil
}

// Root is the folder of the repository: the one with go.mod, at or above the
// working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "tools", "kafka")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("find the repository: no tools/kafka at or above the working directory")
		}
		dir = up
	}
}
