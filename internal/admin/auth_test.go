package admin

import (
	"errors"
	"strings"
	"testing"
	"time"

	"appliance/internal/policy"
	"appliance/internal/token"
)

func TestFormsOfTheAuthorizationHeader(t *testing.T) { // JW-11
	b := setup(t)
	raw := b.mint(t, "admin:read")
	for name, c := range map[string]struct {
		path      string
		headers   []string
		status    int
		challenge string
	}{
		"no header":                         {"/admin/consumer", nil, 401, `Bearer realm="appliance"`},
		"the scheme in lower case":          {"/admin/consumer", []string{"Authorization", "bearer " + raw}, 200, ""},
		"the scheme in upper case":          {"/admin/consumer", []string{"Authorization", "BEARER " + raw}, 200, ""},
		"two spaces":                        {"/admin/consumer", []string{"Authorization", "Bearer  " + raw}, 200, ""},
		"the scheme alone":                  {"/admin/consumer", []string{"Authorization", "Bearer"}, 401, `Bearer realm="appliance", error="invalid_token"`},
		"the token alone":                   {"/admin/consumer", []string{"Authorization", raw}, 401, `Bearer realm="appliance"`},
		"another scheme":                    {"/admin/consumer", []string{"Authorization", "Basic YWRhOnB3"}, 401, `Bearer realm="appliance"`},
		"an unreadable token":               {"/admin/consumer", []string{"Authorization", "Bearer x"}, 401, `Bearer realm="appliance", error="invalid_token"`},
		"a token and something behind it":   {"/admin/consumer", []string{"Authorization", "Bearer " + raw + ", x"}, 401, `Bearer realm="appliance", error="invalid_token"`},
		"two headers, both good":            {"/admin/consumer", []string{"Authorization", "Bearer " + raw, "Authorization", "Bearer " + raw}, 400, `Bearer realm="appliance", error="invalid_request"`},
		"a token in the query":              {"/admin/consumer?access_token=" + raw, nil, 400, `Bearer realm="appliance", error="invalid_request"`},
		"a token in the query and a header": {"/admin/consumer?access_token=" + raw, bearerOf(raw), 400, `Bearer realm="appliance", error="invalid_request"`},
		"a read token on a write route":     {"/admin/consumer:pause", bearerOf(raw), 403, `Bearer realm="appliance", error="insufficient_scope"`},
		"a stale token on an open route":    {"/metrics", bearerOf("stale"), 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			method := "GET"
			if strings.Contains(c.path, ":pause") {
				method = "POST"
			}
			got := b.do(t, method, c.path, c.headers...)
			if got.StatusCode != c.status {
				t.Fatalf("status %d, want %d: %s", got.StatusCode, c.status, got.body)
			}
			if challenge := got.Header.Get("WWW-Authenticate"); challenge != c.challenge {
				t.Errorf("WWW-Authenticate %q, want %q", challenge, c.challenge)
			}
			if c.status >= 400 {
				got.problem(t, c.status)
			}
			if strings.Contains(string(got.body), raw) || strings.Contains(b.log.String(), raw) {
				t.Error("the token is in the answer or in the log")
			}
		})
	}
}

func TestAnExpiredTokenIsToldThatItIs(t *testing.T) {
	b := setup(t)
	raw, err := token.Mint(b.keys, "ada", []string{"admin:read"}, time.Now().Add(-2*time.Hour), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if p := b.get(t, "/admin/consumer", bearerOf(raw)...).problem(t, 401); p.Detail != "token has expired" {
		t.Errorf("detail %q", p.Detail)
	}
	if !strings.Contains(b.log.String(), `"token refused","reason":"token has expired"`) {
		t.Errorf("log: %s", b.log)
	}
}

func TestAVerifiersOwnErrorIsNotShown(t *testing.T) {
	b := setup(t, func(c *Config) {
		c.Verify = func(string, time.Time) (token.Principal, error) {
			return token.Principal{}, errors.New("key file /etc/x")
		}
	})
	if p := b.get(t, "/admin/consumer", bearerOf("x")...).problem(t, 401); p.Detail != "the token was refused" {
		t.Errorf("detail %q", p.Detail)
	}
}

func TestAPolicyThatBreaksRefusesAndLivenessGoesOn(t *testing.T) {
	b := setup(t, func(c *Config) { // two values for one rule: an error of evaluation
		broken, err := policy.New(t.Context(), c.Log, []policy.Module{{Name: "broken.rego", Source: `package appliance.authz
allow := x if some x in [true, false]`}}, policy.Config{})
		if err != nil {
			t.Fatal(err)
		}
		c.Policy = broken
	})
	p := b.get(t, "/admin/consumer", bearerOf(b.mint(t, "admin:write"))...).problem(t, 500)
	if p.Detail != "the policy could not decide" {
		t.Errorf("detail %q", p.Detail)
	}
	if !strings.Contains(b.log.String(), "evaluate policy") {
		t.Errorf("the log doesn't say why: %s", b.log)
	}
	b.get(t, "/health/live").is(t, 200, `{"status":"UP"}`)
}

func TestAPolicyOfTheOperatorsMayCloseWhatIsOpenButNotLiveness(t *testing.T) {
	b := setup(t, func(c *Config) {
		closed, err := policy.New(t.Context(), c.Log, []policy.Module{{Name: "closed.rego", Source: `package appliance.authz
allow if "scrape" in input.principal.scopes`}}, policy.Config{})
		if err != nil {
			t.Fatal(err)
		}
		c.Policy = closed
	})
	b.get(t, "/metrics").problem(t, 401)
	b.get(t, "/metrics", bearerOf(b.mint(t, "admin:write"))...).problem(t, 403)
	b.get(t, "/metrics", bearerOf(b.mint(t, "scrape"))...).is(t, 200, "consume_running 1")
	b.get(t, "/health/live").is(t, 200, `{"status":"UP"}`)
}

func TestEveryDecisionAboutAChangeIsLoggedWithWhoAsked(t *testing.T) {
	b := setup(t)
	b.do(t, "GET", "/admin/consumer", bearerOf(b.mint(t, "admin:read"))...)
	if strings.Contains(b.log.String(), "policy decision") {
		t.Errorf("a look is logged as a change: %s", b.log)
	}
	b.do(t, "POST", "/admin/consumer:pause?reason=tests", bearerOf(b.mint(t, "admin:write"))...)
	for _, want := range []string{
		`"msg":"policy decision"`, `"allow":true`, `"subject":"ada"`, `"rule":"write_scope"`,
		`"route":"/admin/consumer:pause"`, `"params":{"reason":["tests"]}`, `"policy":"`,
	} {
		if !strings.Contains(b.log.String(), want) {
			t.Errorf("%s is not in the log: %s", want, b.log)
		}
	}
	b.do(t, "POST", "/admin/consumer:pause", bearerOf(b.mint(t, "admin:read"))...)
	b.do(t, "POST", "/admin/consumer:pause")
	if n := strings.Count(b.log.String(), `"allow":false`); n != 2 {
		t.Errorf("%d refusals in the log, want 2: %s", n, b.log)
	}
}
