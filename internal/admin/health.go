package admin

import (
	"net/http"

	"appliance/internal/health"
)

const (
	up   = "UP"
	down = "DOWN"
)

// condition is one thing's state in a readiness body.
type condition struct {
	Status string `json:"status"`
	Detail string `json:"detail"`
}

// readiness is the body of GET /health/ready. Dependencies are sorted by name, as a JSON encoder sorts a map.
type readiness struct {
	Status       string               `json:"status"`
	Detail       string               `json:"detail,omitempty"` // only while draining
	Dependencies map[string]condition `json:"dependencies"`
	Pipeline     *condition           `json:"pipeline,omitempty"` // only with ?pipeline=
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	s.config.Metrics.ServeHTTP(w, r)
	return nil
}

// live consults nothing: if it asked the broker, every replica would fail at once during an outage of the broker, and be
// restarted in a loop that outlives it.
func (s *Server) live(w http.ResponseWriter, r *http.Request) error {
	return s.json(w, r, http.StatusOK, struct {
		Status string `json:"status"`
	}{up})
}

// ready answers from what the prober found last. With ?pipeline=NAME that pipeline must be running, too.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	body := readinessOf(s.config.Health(), s.draining.Load())
	if name := r.URL.Query().Get("pipeline"); name != "" {
		pipeline, err := find(s.config.Pipelines.List(), name)
		if err != nil {
			return err
		}
		body.with(pipeline)
	}
	status := http.StatusOK
	if body.Status != up {
		status = http.StatusServiceUnavailable
	}
	return s.json(w, r, status, body)
}

func readinessOf(report health.Report, draining bool) readiness {
	body := readiness{Status: word(report.Up && !draining), Dependencies: map[string]condition{}}
	if draining {
		body.Detail = "draining"
	}
	for _, d := range report.Dependencies {
		body.Dependencies[d.Name] = condition{word(d.Up), d.Detail}
	}
	return body
}

func (b *readiness) with(p Pipeline) {
	c := condition{word(p.State == Running), p.State}
	if p.LastCause != "" && c.Status == down {
		c.Detail += ": " + p.LastCause
	}
	b.Pipeline = &c
	if c.Status == down {
		b.Status = down
	}
}

func word(isUp bool) string {
	if isUp {
		return up
	}
	return down
}
