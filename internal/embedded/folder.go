package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// ErrLocked says that another process uses the data folder. The error of Start
// that matches it is a *LockedError.
var ErrLocked = errors.New("data folder is in use")

// LockedError names the process that uses the data folder, 0 if it did not
// write its number yet.
type LockedError struct {
	Dir string
	PID int
}

// Error names the folder, the process and the way out.
func (e *LockedError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = "process " + strconv.Itoa(e.PID)
	}
	return fmt.Sprintf("data folder %s is in use by %s: end it, or choose another folder", e.Dir, who)
}

// Is makes errors.Is(err, ErrLocked) hold.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// folder is the locked data folder and what is remembered in it between starts.
type folder struct {
	dir  string
	lock *os.File

	mu    sync.Mutex
	notes notes
}

// notes are kept in services.json.
type notes struct {
	KafkaPort    int    `json:"kafka_port,omitempty"`
	PostgresPort int    `json:"postgres_port,omitempty"`
	PostgresHome string `json:"postgres_home,omitempty"` // where its data are, when not in the folder
	ID           string `json:"id,omitempty"`            // marks PostgresHome as this folder's
}

// openFolder makes and locks the folder. Its mode lets others pass, for the
// account that PostgreSQL runs as; everything in it is closed to them.
func openFolder(dir string) (*folder, error) {
	if err := makeFolder(dir); err != nil {
		return nil, fmt.Errorf("open data folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open data folder: %w", err)
	}
	f := &folder{dir: dir, lock: lock}
	if err := f.take(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return f, nil
}

// makeFolder sets the mode whatever the umask, on what it made itself.
func makeFolder(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	return os.Chmod(dir, 0o711)
}

func (f *folder) take() error {
	// The kernel gives the lock back when this process ends, however it ends.
	err := syscall.Flock(int(f.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return &LockedError{Dir: f.dir, PID: readPID(f.lock)}
	}
	if err != nil {
		return fmt.Errorf("lock data folder %s: %w", f.dir, err)
	}
	if err := f.lock.Truncate(0); err != nil {
		return fmt.Errorf("lock data folder: %w", err)
	}
	if _, err := f.lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return fmt.Errorf("lock data folder: %w", err)
	}
	text, err := os.ReadFile(f.path("services.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open data folder: %w", err)
	}
	if err := json.Unmarshal(text, &f.notes); err != nil {
		return fmt.Errorf("open data folder: read %s: %w", f.path("services.json"), err)
	}
	return nil
}

func readPID(r io.ReaderAt) int {
	text := make([]byte, 20)
	n, _ := r.ReadAt(text, 0) // a short file ends early
	pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	if err != nil {
		return 0
	}
	return pid
}

func (f *folder) path(name string) string { return filepath.Join(f.dir, name) }

// postgresHome is the folder of PostgreSQL's data, as far as it is decided.
func (f *folder) postgresHome() string {
	if home := f.remembered().PostgresHome; home != "" {
		return home
	}
	return f.path("postgres")
}

// remembered returns the notes of earlier starts.
func (f *folder) remembered() notes {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.notes
}

// remember changes the notes and writes them.
func (f *folder) remember(change func(*notes)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.notes
	change(&f.notes)
	if f.notes == before {
		return nil
	}
	text, err := json.MarshalIndent(f.notes, "", "  ")
	if err != nil {
		return fmt.Errorf("remember services: %w", err)
	}
	if err := writeFile(f.path("services.json"), append(text, '\n')); err != nil {
		return fmt.Errorf("remember services: %w", err)
	}
	return nil
}

func (f *folder) close() error {
	if err := f.lock.Close(); err != nil {
		return fmt.Errorf("unlock data folder: %w", err)
	}
	return nil
}
