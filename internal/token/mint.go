package token

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// ErrCannotMint is returned for keys that verify and don't sign.
var ErrCannotMint = errors.New("only a shared secret can mint a token")

// Mint signs a token that Verify accepts with the same keys from now until ttl has passed: for a development token, which
// has to come from the very secret that it will be checked with. Keys of an RS algorithm give ErrCannotMint.
func Mint(keys Keys, subject string, scopes []string, now time.Time, ttl time.Duration) (string, error) {
	secret, ok := keys.key.([]byte)
	if !ok {
		return "", ErrCannotMint
	}
	if ttl < time.Second {
		return "", errors.New("mint token: it would expire at once")
	}
	claims := jwt.MapClaims{
		"sub":   subject,
		"scope": strings.Join(scopes, " "),
		"iat":   now.Unix(),
		"exp":   now.Add(ttl).Unix(),
	}
	if keys.issuer != "" {
		claims["iss"] = keys.issuer
	}
	if keys.audience != "" {
		claims["aud"] = keys.audience
	}
	raw, err := jwt.NewWithClaims(jwt.GetSigningMethod(keys.algorithm), claims).SignedString(secret)
	if err != nil {
		return "", fmt.Errorf("mint token: %w", err)
	}
	return raw, nil
}
