package admin

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
)

// Problem is an answer of the form application/problem+json (RFC 9457), and the error that becomes one.
type Problem struct {
	Type   string `json:"type"` // always "about:blank": the status says it all
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`

	header http.Header // beside the body: WWW-Authenticate, Allow, Retry-After
	cause  error       // for the log and never for the caller
}

const blank = "about:blank"

// Error gives title, detail and what is behind them.
func (p *Problem) Error() string {
	text := p.Title + ": " + p.Detail
	if p.cause != nil {
		text += ": " + p.cause.Error()
	}
	return text
}

// Unwrap gives what is behind the problem.
func (p *Problem) Unwrap() error { return p.cause }

// newProblem returns a problem whose detail is for the caller's eyes.
func newProblem(status int, detail string) *Problem {
	return &Problem{
		Type: blank, Title: http.StatusText(status), Status: status, Detail: detail, header: http.Header{},
	}
}

// refuse writes the answer to err. What isn't a *Problem is not shown: its text may hold what the caller must not see.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError {
		s.config.Log.ErrorContext(r.Context(), "request failed",
			slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Any("error", err))
	}
	maps.Copy(w.Header(), p.header)
	s.write(w, r, "application/problem+json", p.Status, p)
}

func problemOf(err error) *Problem {
	var known *Problem
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &tooLarge):
		return newProblem(http.StatusRequestEntityTooLarge, "the request's body is too large")
	case errors.Is(err, ErrUnknownPipeline):
		return newProblem(http.StatusNotFound, "there is no such pipeline")
	case errors.Is(err, context.DeadlineExceeded):
		p := newProblem(http.StatusServiceUnavailable, "broker or database did not answer in time")
		p.header.Set("Retry-After", "5")
		return p
	default:
		return newProblem(http.StatusInternalServerError, "the log says what went wrong")
	}
}

// json writes a value as the answer.
func (s *Server) json(w http.ResponseWriter, r *http.Request, status int, value any) error {
	s.write(w, r, "application/json", status, value)
	return nil
}

// write encodes before it writes, so that what can't be encoded doesn't end as half an answer.
func (s *Server) write(w http.ResponseWriter, r *http.Request, contentType string, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		panic("admin: an answer that is not JSON: " + err.Error()) // a mistake of this package
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	if _, err := w.Write(append(body, '\n')); err != nil {
		s.config.Log.DebugContext(r.Context(), "client left before its answer", slog.Any("error", err))
	}
}
