package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strings"

	"appliance/internal/policy"
)

// Access is what a route needs, as the table declares it. The policy decides; a test holds the two against each other.
type Access string

// The three kinds of access.
const (
	Open  Access = "open"  // who scrapes or probes can hold no token
	Read  Access = "read"  // shows payloads, offsets, configuration
	Write Access = "write" // changes something; its decisions are logged
)

// Route is one entry of the table.
type Route struct {
	Method  string
	Pattern string // of net/http.ServeMux, without the method
	Access  Access

	handle handler
	direct bool // answered without asking the policy: liveness consults nothing
}

// handler answers, or returns what went wrong: a *Problem, or an error that becomes one.
type handler func(w http.ResponseWriter, r *http.Request) error

// Routes returns the table.
func (s *Server) Routes() []Route {
	return []Route{
		{Method: "GET", Pattern: "/metrics", Access: Open, handle: s.metrics},
		{Method: "GET", Pattern: "/health/live", Access: Open, handle: s.live, direct: true},
		{Method: "GET", Pattern: "/health/ready", Access: Open, handle: s.ready},
		{Method: "GET", Pattern: "/admin/consumer", Access: Read, handle: s.consumer},
		{Method: "GET", Pattern: "/admin/pipelines", Access: Read, handle: s.pipelines},
	}
}

// door is the whole handler: headers, limits, routes, problems.
func (s *Server) door(routes []Route) http.Handler {
	mux := s.mux(routes)
	return s.answered(func(w http.ResponseWriter, r *http.Request) error {
		if err := routable(mux, routes, r); err != nil {
			return err
		}
		mux.ServeHTTP(w, r)
		return nil
	})
}

// mux registers every route behind its guard; nothing else registers a handler.
func (s *Server) mux(routes []Route) *http.ServeMux {
	mux := http.NewServeMux()
	for _, route := range routes {
		mux.Handle(route.Method+" "+route.Pattern, s.guarded(route))
	}
	return mux
}

// routable says why no route takes r: nothing there (404), or not with this method (405). The mux's own answers are text,
// and it redirects a path that is not clean, before anybody was asked who calls.
func routable(mux *http.ServeMux, routes []Route, r *http.Request) error {
	if clean := path.Clean(r.URL.Path); clean != r.URL.Path {
		return newProblem(http.StatusNotFound, "nothing is served at this path")
	}
	if _, pattern := mux.Handler(r); pattern != "" {
		return nil
	}
	allowed := map[string]struct{}{}
	for _, route := range routes {
		probe := r.Clone(r.Context())
		probe.Method = route.Method
		if _, pattern := mux.Handler(probe); pattern != "" {
			allowed[route.Method] = struct{}{}
		}
	}
	if len(allowed) == 0 {
		return newProblem(http.StatusNotFound, "nothing is served at this path")
	}
	p := newProblem(http.StatusMethodNotAllowed, r.Method+" is not allowed here")
	p.header.Set("Allow", allowList(allowed))
	return p
}

// allowList names the methods, with HEAD beside GET, as the mux serves it.
func allowList(methods map[string]struct{}) string {
	var names []string
	for m := range methods {
		names = append(names, m)
		if m == http.MethodGet {
			names = append(names, http.MethodHead)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// guarded is a route's handler behind the question who may use it.
func (s *Server) guarded(route Route) http.Handler {
	return s.answered(func(w http.ResponseWriter, r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), s.config.Limits.Handle)
		defer cancel()
		r = r.WithContext(ctx)
		r.Body = http.MaxBytesReader(w, r.Body, s.config.Limits.Body)
		if !route.direct {
			if err := s.authorize(r, route); err != nil {
				return err
			}
		}
		return route.handle(w, r)
	})
}

// answered sets the headers that every answer has, and makes a problem of an error and of a panic.
func (s *Server) answered(handle handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		out := &response{ResponseWriter: w}
		err := recovered(handle, out, r)
		if err == nil {
			return
		}
		if out.begun { // a problem behind half an answer would look like its end: cut it, so that the client sees a failure
			s.config.Log.ErrorContext(r.Context(), "answer cut", slog.String("path", r.URL.Path), slog.Any("error", err))
			panic(http.ErrAbortHandler)
		}
		s.refuse(out, r, err)
	})
}

// response knows whether the answer has begun.
type response struct {
	http.ResponseWriter
	begun bool
}

func (w *response) WriteHeader(status int) {
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(p []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController flush and set deadlines.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// recovered makes an error of a panic, but for the one by which a handler cuts its answer.
func recovered(handle handler, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		caught := recover()
		if abort, ok := caught.(error); ok && errors.Is(abort, http.ErrAbortHandler) {
			panic(caught)
		}
		if caught != nil {
			err = fmt.Errorf("panic: %v\n%s", caught, debug.Stack())
		}
	}()
	return handle(w, r)
}

// secure sets what keeps an answer from being cached, sniffed, framed or run by a browser.
func secure(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

var _ Authorizer = (*policy.Engine)(nil)
