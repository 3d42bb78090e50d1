// Package token verifies JSON Web Tokens: who calls, never what they may do. It is pure: keys and clock are arguments.
//
// A verification has two steps. An own pass refuses every form that another reader could read differently: loose base64,
// repeated or oddly spelt names, unbounded numbers, headers that name keys or demand extensions. golang-jwt then checks
// signature, times, issuer and audience. Alone it accepts "crit", repeated claims and loose encodings.
package token

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// The ways in which a token is refused. None holds anything of the token's text, so each can be shown to the caller.
var (
	ErrMalformed   = errors.New("token is malformed")
	ErrAlgorithm   = errors.New("token is not signed with the configured algorithm")
	ErrSignature   = errors.New("token's signature is not valid")
	ErrExpired     = errors.New("token has expired")
	ErrNotYetValid = errors.New("token is not valid yet")
	ErrIssuer      = errors.New("token's issuer is not the configured one")
	ErrAudience    = errors.New("token's audience does not hold the configured one")
)

// Principal is who a verified token speaks for.
type Principal struct {
	Subject   string // sub, "" where the token has none
	Issuer    string // iss, "" where the token has none
	Scopes    []string
	ExpiresAt time.Time
	Claims    map[string]any // all of them as JSON decodes, for policies that look at more
}

// Has says whether scope is one of the principal's, compared as a whole and exactly.
func (p Principal) Has(scope string) bool { return slices.Contains(p.Scopes, scope) }

// Verify returns whom raw speaks for at the moment now, or one of this package's errors.
//
// raw is a JWS in compact form (RFC 7515 §7.1) of at most 8 KiB with the pinned algorithm. exp is mandatory; exp and nbf are
// compared with the keys' leeway; iss and aud must match where the keys name one. iat is not compared: it says how old a
// token is and not whether it is valid (RFC 7519 §4.1.6).
//
// Scopes come from the claim "scope", a string of names separated by single spaces (RFC 8693 §4.2). An array, another
// separator or the claim "scp" grants nothing.
func Verify(raw string, keys Keys, now time.Time) (Principal, error) {
	if keys.key == nil {
		return Principal{}, fmt.Errorf("%w: no key is configured", ErrSignature) // the zero Keys accepts nothing
	}
	if err := strict(raw, keys.algorithm); err != nil {
		return Principal{}, err
	}
	claims := jwt.MapClaims{}
	_, err := jwt.NewParser(options(keys, now)...).ParseWithClaims(raw, claims, func(*jwt.Token) (any, error) {
		return keys.key, nil
	})
	if err != nil {
		return Principal{}, refusal(err)
	}
	return principal(claims)
}

func options(keys Keys, now time.Time) []jwt.ParserOption {
	opts := []jwt.ParserOption{
		jwt.WithValidMethods([]string{keys.algorithm}),
		jwt.WithStrictDecoding(),
		jwt.WithExpirationRequired(),
		jwt.WithLeeway(keys.leeway),
		jwt.WithTimeFunc(func() time.Time { return now }),
	}
	if keys.issuer != "" {
		opts = append(opts, jwt.WithIssuer(keys.issuer))
	}
	if keys.audience != "" {
		opts = append(opts, jwt.WithAudience(keys.audience))
	}
	return opts
}

// refusal names the first thing that is wrong, the signature before anything that only a true signer could have written.
func refusal(err error) error {
	for _, known := range []struct{ theirs, ours error }{
		{jwt.ErrTokenSignatureInvalid, ErrSignature},
		{jwt.ErrTokenExpired, ErrExpired},
		{jwt.ErrTokenNotValidYet, ErrNotYetValid},
		{jwt.ErrTokenInvalidIssuer, ErrIssuer},
		{jwt.ErrTokenInvalidAudience, ErrAudience},
	} {
		if errors.Is(err, known.theirs) {
			return known.ours
		}
	}
	return fmt.Errorf("%w: %s", ErrMalformed, missing(err))
}

// missing tells which claim is absent or of another type, in words of ours: golang-jwt's may quote the token.
func missing(err error) string {
	text := err.Error()
	for _, claim := range []string{"iss", "aud", "exp"} {
		if strings.Contains(text, claim) {
			return claim + " is missing or of another type"
		}
	}
	return "a claim is missing or of another type"
}

func principal(claims jwt.MapClaims) (Principal, error) {
	expires, err := claims.GetExpirationTime()
	if err != nil || expires == nil {
		return Principal{}, fmt.Errorf("%w: exp is missing or of another type", ErrMalformed)
	}
	subject, _ := claims["sub"].(string)
	issuer, _ := claims["iss"].(string)
	scope, _ := claims["scope"].(string)
	return Principal{
		Subject:   subject,
		Issuer:    issuer,
		Scopes:    scopes(scope),
		ExpiresAt: expires.Time,
		Claims:    claims,
	}, nil
}

// scopes splits at U+0020 only: to split at any white space would read "a\tb", which is one odd name, as two.
func scopes(claim string) []string {
	return slices.DeleteFunc(strings.Split(claim, " "), func(name string) bool { return name == "" })
}
