package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"appliance/internal/health"
	"appliance/internal/policy"
	"appliance/internal/token"
	"appliance/policies"
)

// journal is a log that can be read while it is written.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// state answers what the listener asks, from fields that a test sets before it asks.
type state struct {
	pipelines []Pipeline
	offsets   func(ctx context.Context, name string) (Offsets, error)
}

func (s *state) List() []Pipeline { return s.pipelines }

func (s *state) Offsets(ctx context.Context, name string) (Offsets, error) {
	return s.offsets(ctx, name)
}

// bundle is a listener on a real socket, with the shipped policy and keys of its own.
type bundle struct {
	server *Server
	base   string
	keys   token.Keys
	log    *journal
	state  *state
	report health.Report
	client *http.Client
}

const secret = "a secret of the test, long enough to be one"

// setup starts a listener; change sets what differs from the usual.
func setup(t *testing.T, change ...func(*Config)) *bundle {
	t.Helper()
	keys, err := token.NewKeys(token.Settings{Algorithm: "HS256", Secret: secret, Leeway: token.DefaultLeeway})
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{
		keys:   keys,
		log:    &journal{},
		state:  &state{offsets: func(context.Context, string) (Offsets, error) { return Offsets{}, nil }},
		report: health.Report{Up: true},
		client: &http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	b.server, err = New(b.config(t, change...))
	if err != nil {
		t.Fatal(err)
	}
	b.server.http.Handler = b.server.door(b.server.declared())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.base = "http://" + listener.Addr().String()
	b.server.Start(listener)
	t.Cleanup(func() {
		b.client.CloseIdleConnections()
		if err := b.server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bundle) config(t *testing.T, change ...func(*Config)) Config {
	t.Helper()
	log := slog.New(slog.NewJSONHandler(b.log, nil))
	c := Config{
		Verify: func(raw string, now time.Time) (token.Principal, error) { return token.Verify(raw, b.keys, now) },
		Policy: shipped(t, log),
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "consume_running 1\n")
		}),
		Health:    func() health.Report { return b.report },
		Pipelines: b.state,
		Consumer:  "persist",
		Now:       time.Now,
		Log:       log,
	}
	b.state.pipelines = []Pipeline{{Name: "persist", State: "running"}}
	for _, f := range change {
		f(&c)
	}
	return c
}

func shipped(t *testing.T, log *slog.Logger) *policy.Engine {
	t.Helper()
	modules, err := policy.Load(policies.Files())
	if err != nil {
		t.Fatal(err)
	}
	engine, err := policy.New(t.Context(), log, modules, policy.Config{ReadScope: "admin:read", WriteScope: "admin:write"})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// mint returns a token of the test's issuer with scopes.
func (b *bundle) mint(t *testing.T, scopes ...string) string {
	t.Helper()
	raw, err := token.Mint(b.keys, "ada", scopes, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// answer is a response whose body was read.
type answer struct {
	*http.Response
	body []byte
}

func (b *bundle) do(t *testing.T, method, path string, headers ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, b.base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for pair := range slices.Chunk(headers, 2) {
		req.Header.Add(pair[0], pair[1])
	}
	res, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res, body}
}

func (b *bundle) get(t *testing.T, path string, headers ...string) answer {
	t.Helper()
	return b.do(t, "GET", path, headers...)
}

// problem checks that a is application/problem+json which says its own status, and returns it.
func (a answer) problem(t *testing.T, status int) Problem {
	t.Helper()
	if a.StatusCode != status {
		t.Fatalf("status %d, want %d: %s", a.StatusCode, status, a.body)
	}
	if got := a.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("content type %q", got)
	}
	var p Problem
	decoder := json.NewDecoder(bytes.NewReader(a.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil {
		t.Fatalf("body %q: %v", a.body, err)
	}
	if p.Status != status || p.Title != http.StatusText(status) || p.Type != "about:blank" {
		t.Errorf("problem %+v", p)
	}
	return p
}

func (a answer) is(t *testing.T, status int, body string) {
	t.Helper()
	if got := strings.TrimSpace(string(a.body)); a.StatusCode != status || got != body {
		t.Errorf("got  %d %s\nwant %d %s", a.StatusCode, got, status, body)
	}
}

func bearerOf(raw string) []string { return []string{"Authorization", "Bearer " + raw} }
