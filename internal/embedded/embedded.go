// Package embedded runs what `appliance run --dev` needs beside itself: a Kafka
// broker inside this process and a PostgreSQL server as its child, both on
// 127.0.0.1, with their data, their ports and generated secrets in one folder.
// What was acknowledged survives a kill of this process at any moment.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Options say where the services live and whom they tell.
type Options struct {
	Dir       string       // the data folder; made if missing, used by one process at a time
	Path      string       // directories to look for PostgreSQL's binaries in, as $PATH
	UserCache string       // os.UserCacheDir; binaries that had to be fetched are kept below
	Out       io.Writer    // one line for people at each step that takes time or decides something
	Log       *slog.Logger // the broker's log
}

// Services are running. They end with Close, and with this process in whatever
// way it ends.
type Services struct {
	KafkaBootstrap string  // host:port
	PostgresURL    string  // of a superuser, as psql takes it; contains the password
	Secrets        Secrets // the same at every start on the folder

	folder   *folder
	kafka    *kafkaBroker
	postgres *postgresServer
	closing  sync.Once
	closed   error
}

// Start locks the folder, generates or reads its secrets and starts both
// services, and returns when both answer. It returns an error that matches
// ErrLocked when another process uses the folder. Topics are the caller's to
// create: the broker refuses a topic nobody created, as a real one does.
func Start(ctx context.Context, o Options) (*Services, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("start embedded services: %w", err)
	}
	f, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	s := &Services{folder: f}
	if err := s.start(ctx, o); err != nil {
		// What did start is ended even though ctx may be over already.
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *Services) start(ctx context.Context, o Options) error {
	var err error
	if s.Secrets, err = loadSecrets(s.folder.path(secretsFile)); err != nil {
		return err
	}
	out := &lines{w: o.Out}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		s.kafka, err = startKafka(ctx, s.folder, o.Log, out)
		return err
	})
	group.Go(func() (err error) {
		s.postgres, err = startPostgres(ctx, s.folder, s.Secrets.DatabasePassword, o, out)
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	s.KafkaBootstrap, s.PostgresURL = s.kafka.address(), s.postgres.url()
	return nil
}

// PostgresEnded is closed when the PostgreSQL server ended, by Close or by
// itself.
func (s *Services) PostgresEnded() <-chan struct{} { return s.postgres.server.Ended() }

// Close ends both services, which write what they hold, and unlocks the
// folder. The users of the services have closed their connections before:
// sessions that are left are ended. A second call returns the first's result.
func (s *Services) Close(ctx context.Context) error {
	s.closing.Do(func() {
		var group errgroup.Group
		if s.kafka != nil {
			group.Go(func() error { s.kafka.close(); return nil })
		}
		if s.postgres != nil {
			group.Go(func() error { return s.postgres.close(ctx) })
		}
		// The lock goes last: the next owner must find nobody.
		s.closed = errors.Join(group.Wait(), s.folder.close())
	})
	return s.closed
}

// lines writes whole lines from several goroutines.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.w, format+"\n", args...)
}

// Write lets a library report its progress as lines do.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// interface guard
var _ io.Writer = (*lines)(nil)

// writeFile replaces a file whole, so that a kill leaves the old one or the
// new one, and flushes it before anything relies on it.
func writeFile(name string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), name)
}
