package admin

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"appliance/internal/policy"
	"appliance/internal/token"
)

// errNoToken is a request without credentials.
var errNoToken = errors.New("no token")

// authorize asks who calls and then, once, whether they may; nobody may use an open route, too, and so may a scraper whose
// token is stale. A request without a valid token is refused with 401, one whose
// token grants too little with 403: repeating it with the same token can't help, and a client that retries on 401 would
// loop.
func (s *Server) authorize(r *http.Request, route Route) error {
	in := policy.Input{
		Method:         r.Method,
		Route:          route.Pattern,
		Params:         params(r),
		Authentication: policy.Disabled,
		Mutates:        route.Access == Write,
	}
	var refused error
	if s.config.Verify != nil {
		in.Principal, refused = s.principal(r)
		in.Authentication = policy.Verified
		if in.Principal == nil {
			in.Authentication = policy.None
		}
	}
	decision, err := s.config.Policy.Decide(r.Context(), in)
	switch {
	case err != nil:
		return &Problem{
			Type: blank, Title: http.StatusText(http.StatusInternalServerError), Status: http.StatusInternalServerError,
			Detail: "the policy could not decide", cause: err,
		}
	case decision.Allow:
		return nil
	case refused != nil:
		return unauthorized(refused)
	}
	p := newProblem(http.StatusForbidden, "the policy does not grant this to the caller")
	p.header.Set("WWW-Authenticate", `Bearer realm="appliance", error="insufficient_scope"`)
	return p
}

// principal returns who calls, or nil and why nobody does.
func (s *Server) principal(r *http.Request) (*policy.Principal, error) {
	raw, err := bearer(r)
	if err != nil {
		return nil, err
	}
	who, err := s.config.Verify(raw, s.config.Now())
	if err != nil {
		s.config.Log.WarnContext(r.Context(), "token refused",
			slog.String("reason", err.Error()), slog.String("remote", r.RemoteAddr), slog.String("path", r.URL.Path))
		return nil, err
	}
	return &policy.Principal{Subject: who.Subject, Issuer: who.Issuer, Scopes: who.Scopes, Claims: who.Claims}, nil
}

// bearer returns the token of the one Authorization header. A token in the query is refused even beside a good header: it
// is in the log of every proxy on the way (RFC 6750 §5.3).
func bearer(r *http.Request) (string, error) {
	if r.URL.Query().Has("access_token") {
		return "", newProblem(http.StatusBadRequest, "a token belongs in the Authorization header and not in the URL")
	}
	headers := r.Header.Values("Authorization")
	if len(headers) == 0 {
		return "", errNoToken
	}
	if len(headers) > 1 {
		return "", newProblem(http.StatusBadRequest, "more than one Authorization header")
	}
	scheme, raw, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") { // RFC 9110 §11.1: schemes are case-insensitive
		return "", errNoToken
	}
	return strings.TrimLeft(raw, " "), nil
}

// unauthorized is the answer to a request of nobody: 401, or what bearer said about its form.
func unauthorized(cause error) error {
	p := newProblem(http.StatusUnauthorized, "this needs a bearer token")
	challenge := `Bearer realm="appliance"`
	var form *Problem
	switch {
	case errors.As(cause, &form):
		p, challenge = form, challenge+`, error="invalid_request"`
	case !errors.Is(cause, errNoToken):
		p.Detail, challenge = reason(cause), challenge+`, error="invalid_token"`
	}
	p.header.Set("WWW-Authenticate", challenge)
	return p
}

// reason is the token package's own sentence, which never holds a part of the token; any other error is not shown.
func reason(cause error) string {
	for _, known := range []error{
		token.ErrMalformed, token.ErrAlgorithm, token.ErrSignature, token.ErrExpired, token.ErrNotYetValid,
		token.ErrIssuer, token.ErrAudience,
	} {
		if errors.Is(cause, known) {
			return cause.Error()
		}
	}
	return "the token was refused"
}

// params are the query's parameters and those of the path, by name.
func params(r *http.Request) map[string][]string {
	all := map[string][]string(r.URL.Query())
	for segment := range strings.SplitSeq(r.Pattern, "/") {
		name, isParam := strings.CutPrefix(segment, "{")
		if isParam {
			name = strings.TrimSuffix(strings.TrimSuffix(name, "}"), "...")
			all[name] = []string{r.PathValue(name)}
		}
	}
	return all
}
