package admin

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// declared adds a route that changes something and reads a body, as the table has none yet that does, and one with a name
// in its path.
func (s *Server) declared() []Route {
	done := func(_ http.ResponseWriter, r *http.Request) error {
		_, err := io.Copy(io.Discard, r.Body)
		return err
	}
	return append(s.Routes(),
		Route{Method: "POST", Pattern: "/admin/consumer:pause", Access: Write, handle: done},
		Route{Method: "GET", Pattern: "/admin/dlq/{ref}", Access: Read, handle: done})
}

func TestTheTableAndTheRouterKnowTheSameRoutes(t *testing.T) {
	b := setup(t)
	mux := b.server.mux(b.server.declared())
	table := map[string]bool{}
	for _, route := range b.server.declared() {
		pattern := route.Method + " " + route.Pattern
		if table[pattern] {
			t.Errorf("%s is declared twice", pattern)
		}
		table[pattern] = true
		_, got := mux.Handler(httptest.NewRequest(route.Method, strings.ReplaceAll(route.Pattern, "{ref}", "x"), nil))
		if got != pattern {
			t.Errorf("the router takes %s as %q", pattern, got)
		}
	}
	// The other way round: whatever the router answers to is in the table. Its patterns can't be listed, so every path of
	// the table is asked with every method, and so are paths that others serve by habit.
	paths := []string{"/", "/debug/pprof/", "/debug/vars", "/favicon.ico", "/health", "/admin", "/admin/", "/metrics/x"}
	for _, route := range b.server.declared() {
		paths = append(paths, strings.ReplaceAll(route.Pattern, "{ref}", "x"))
	}
	for _, path := range paths {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "QUERY"} {
			_, got := mux.Handler(httptest.NewRequest(method, path, nil))
			if got != "" && !table[got] {
				t.Errorf("%s %s is served as %q, which the table doesn't have", method, path, got)
			}
		}
	}
}

func TestEveryRouteServesWhatTheTableDeclares(t *testing.T) {
	b := setup(t)
	forged := b.mint(t, "admin:read", "admin:write")
	forged = forged[:len(forged)-4] + "AAAA"
	for _, route := range b.server.declared() {
		for _, c := range []struct {
			who   string
			token string
			want  map[Access]int
		}{
			{"no token", "", map[Access]int{Open: 200, Read: 401, Write: 401}},
			{"a forged token", forged, map[Access]int{Open: 200, Read: 401, Write: 401}},
			{"a token without a scope", b.mint(t), map[Access]int{Open: 200, Read: 403, Write: 403}},
			{"a read token", b.mint(t, "admin:read"), map[Access]int{Open: 200, Read: 200, Write: 403}},
			{"a write token", b.mint(t, "admin:write"), map[Access]int{Open: 200, Read: 200, Write: 200}},
		} {
			t.Run(route.Method+" "+route.Pattern+" with "+c.who, func(t *testing.T) {
				var headers []string
				if c.token != "" {
					headers = bearerOf(c.token)
				}
				got := b.do(t, route.Method, strings.ReplaceAll(route.Pattern, "{ref}", "x"), headers...)
				want := c.want[route.Access]
				if got.StatusCode != want {
					t.Fatalf("status %d, want %d: %s", got.StatusCode, want, got.body)
				}
				if want >= 400 {
					got.problem(t, want)
				}
				challenge := got.Header.Get("WWW-Authenticate")
				if want == 401 && !strings.HasPrefix(challenge, "Bearer") {
					t.Errorf("401 with WWW-Authenticate %q", challenge)
				}
				if want == 200 && challenge != "" {
					t.Errorf("200 with WWW-Authenticate %q", challenge)
				}
			})
		}
	}
}

func TestWithAuthenticationDisabledEverythingIsServedAndTheLogSaysItLoudly(t *testing.T) {
	b := setup(t, func(c *Config) { c.Verify = nil })
	for _, route := range b.server.declared() {
		got := b.do(t, route.Method, strings.ReplaceAll(route.Pattern, "{ref}", "x"))
		if got.StatusCode != 200 {
			t.Errorf("%s %s: %d", route.Method, route.Pattern, got.StatusCode)
		}
	}
	if !strings.Contains(b.log.String(), "AUTHENTICATION OF THE ADMIN LISTENER IS DISABLED") {
		t.Errorf("the log doesn't say it:\n%s", b.log)
	}
}

func TestWithAuthenticationTheLogSaysNothingOfTheSort(t *testing.T) {
	if b := setup(t); strings.Contains(b.log.String(), "DISABLED") {
		t.Error(b.log.String())
	}
}

func TestWhatIsNotServedIsAProblem(t *testing.T) {
	b := setup(t)
	for name, c := range map[string]struct {
		method, path string
		status       int
		allow        string
	}{
		"an unknown path":                         {"GET", "/nothing", 404, ""},
		"the root":                                {"GET", "/", 404, ""},
		"a path with a slash at its end":          {"GET", "/metrics/", 404, ""},
		"a path that isn't clean, not redirected": {"GET", "/admin/../metrics", 404, ""},
		"doubled slashes, not redirected":         {"GET", "//metrics", 404, ""},
		"a method that the path doesn't take":     {"POST", "/metrics", 405, "GET, HEAD"},
		"a method on a route that changes":        {"GET", "/admin/consumer:pause", 405, "POST"},
		"OPTIONS":                                 {"OPTIONS", "/health/live", 405, "GET, HEAD"},
		"a method of nobody's":                    {"BREW", "/admin/consumer", 405, "GET, HEAD"},
		"a path with a name and another method":   {"DELETE", "/admin/dlq/x", 405, "GET, HEAD"},
	} {
		t.Run(name, func(t *testing.T) {
			got := b.do(t, c.method, c.path)
			got.problem(t, c.status)
			if allow := got.Header.Get("Allow"); allow != c.allow {
				t.Errorf("Allow %q, want %q", allow, c.allow)
			}
		})
	}
}

func TestHeadIsGetWithoutABody(t *testing.T) {
	b := setup(t)
	if got := b.do(t, "HEAD", "/health/live"); got.StatusCode != 200 || len(got.body) != 0 {
		t.Errorf("%d %q", got.StatusCode, got.body)
	}
	if got := b.do(t, "HEAD", "/admin/pipelines"); got.StatusCode != 401 {
		t.Errorf("HEAD opens a route: %d", got.StatusCode)
	}
}

func TestEveryAnswerHasTheSecurityHeaders(t *testing.T) {
	b := setup(t)
	for _, path := range []string{"/metrics", "/health/live", "/health/ready", "/admin/consumer", "/nothing"} {
		got := b.get(t, path)
		for name, want := range map[string]string{
			"Cache-Control":           "no-store",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
			"Referrer-Policy":         "no-referrer",
			"X-Content-Type-Options":  "nosniff",
			"X-Frame-Options":         "DENY",
		} {
			if v := got.Header.Get(name); v != want {
				t.Errorf("%s: %s is %q", path, name, v)
			}
		}
	}
}

func TestAHandlerThatPanicsIsA500WhoseCauseIsInTheLogOnly(t *testing.T) {
	b := setup(t, func(c *Config) {
		c.Metrics = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("secret of the collector") })
	})
	got := b.get(t, "/metrics")
	got.problem(t, 500)
	if strings.Contains(string(got.body), "secret of the collector") {
		t.Errorf("the body tells the cause: %s", got.body)
	}
	if !strings.Contains(b.log.String(), "secret of the collector") {
		t.Errorf("the log doesn't tell the cause: %s", b.log)
	}
}

func TestAnAnswerThatBreaksOffIsCutAndNotEndedWithAProblem(t *testing.T) {
	b := setup(t, func(c *Config) {
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("# a line of the exposition\n", 1000))
			panic("half way")
		})
	})
	req, err := http.NewRequestWithContext(t.Context(), "GET", b.base+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := b.client.Do(req)
	if err != nil {
		return // cut before the header was out
	}
	defer func() { _ = res.Body.Close() }()
	if body, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("the client took %d bytes for a whole answer", len(body))
	}
}
