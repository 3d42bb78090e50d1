// Package admin is the operators' HTTP door: metrics, health, and the state of the pipelines. It knows shapes and not
// engines: what it shows and who may see it arrive as functions and interfaces.
//
// One table of routes registers the handlers and decides what each needs, so that there is no handler without an access
// decision. Every handler returns an error, and one place makes it an answer (RFC 9457).
package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"appliance/internal/health"
	"appliance/internal/policy"
	"appliance/internal/token"
)

// Authorizer decides whether a request may go on; *policy.Engine is one.
type Authorizer interface {
	Decide(ctx context.Context, in policy.Input) (policy.Decision, error)
}

// Config is what the listener serves and asks.
type Config struct {
	// Verify says whom a bearer token speaks for. nil turns authentication off: every route is open to whoever reaches the
	// port, and New says so in the log.
	Verify func(raw string, now time.Time) (token.Principal, error)
	Policy Authorizer // asked once per request, but not for liveness

	Metrics   http.Handler
	Health    func() health.Report // reads fields and doesn't wait
	Pipelines Pipelines
	Consumer  string // the pipeline that GET /admin/consumer is about, "" for none

	Now    func() time.Time
	Log    *slog.Logger
	Limits Limits
}

// Limits bound what one client can take. A zero field has its default.
type Limits struct {
	ReadHeader time.Duration // 5 s: from the first byte of a request to the end of its header
	Read       time.Duration // 15 s: the whole request
	Handle     time.Duration // 10 s: what a handler may ask broker and database
	Write      time.Duration // 30 s: from the end of the header to the end of the answer
	Idle       time.Duration // 60 s: a connection without a request
	Header     int           // 16 KiB: room for a token of 8 KiB
	Body       int64         // 64 KiB: the longest list of refs
}

func (l Limits) withDefaults() Limits {
	l.ReadHeader = orDefault(l.ReadHeader, 5*time.Second)
	l.Read = orDefault(l.Read, 15*time.Second)
	l.Handle = orDefault(l.Handle, 10*time.Second)
	l.Write = orDefault(l.Write, 30*time.Second)
	l.Idle = orDefault(l.Idle, time.Minute)
	l.Header = orDefault(l.Header, 16<<10)
	l.Body = orDefault(l.Body, 64<<10)
	return l
}

func orDefault[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// Server is the listener's life: New, Start, Unready when the drain begins, Shutdown when all else has ended.
type Server struct {
	config   Config
	http     *http.Server
	draining atomic.Bool
	ended    chan struct{} // closed when serving ended
	failure  error         // why, written before ended is closed
}

// New builds the routes. It serves nothing before Start.
func New(config Config) (*Server, error) {
	if config.Policy == nil || config.Metrics == nil || config.Health == nil || config.Pipelines == nil {
		return nil, errors.New("build admin server: policy, metrics, health and pipelines are needed")
	}
	config.Limits = config.Limits.withDefaults()
	s := &Server{config: config, ended: make(chan struct{})}
	if config.Verify == nil {
		config.Log.Warn("AUTHENTICATION OF THE ADMIN LISTENER IS DISABLED: WHOEVER REACHES ITS PORT CAN READ AND CHANGE EVERYTHING")
	}
	s.http = &http.Server{
		Handler:           s.door(s.Routes()),
		ReadHeaderTimeout: config.Limits.ReadHeader,
		ReadTimeout:       config.Limits.Read,
		WriteTimeout:      config.Limits.Write,
		IdleTimeout:       config.Limits.Idle,
		MaxHeaderBytes:    config.Limits.Header,
		ErrorLog:          slog.NewLogLogger(config.Log.Handler(), slog.LevelDebug), // clients that break TLS or HTTP
		// "OPTIONS *" is a path like another: not found.
		DisableGeneralOptionsHandler: true,
	}
	return s, nil
}

// Start serves on listener in the background; the server owns the listener from now on. Call it once.
func (s *Server) Start(listener net.Listener) {
	go func() {
		defer close(s.ended)
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.failure = fmt.Errorf("serve admin: %w", err)
		}
	}()
}

// Ended is closed when nothing is served any more, after Shutdown or a failure of the listener.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// Err tells why serving ended, nil after Shutdown. It is meant for the time after Ended.
func (s *Server) Err() error {
	select {
	case <-s.ended:
		return s.failure
	default:
		return nil
	}
}

// Unready makes readiness fail from now on, so that no traffic is sent here during the drain. Metrics and health go on: the
// drain is the part of a shutdown that can lose data, and must not be the part that nobody can watch.
func (s *Server) Unready() { s.draining.Store(true) }

// Shutdown takes no new connection and waits until the requests under way are answered, or until ctx ends; then it closes
// them.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("shut down admin: %w", err), s.http.Close())
	}
	select {
	case <-s.ended:
	case <-ctx.Done():
	}
	return err
}
