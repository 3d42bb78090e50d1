package token

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

const (
	maxToken = 8 << 10      // bytes: room for an RS512 signature and a long list of groups, and nothing to allocate with
	maxTime  = 253402300799 // 9999-12-31T23:59:59Z: a larger number wraps around where seconds become an int64
)

// strict refuses what could be read in two ways, and every algorithm but the pinned one. It doesn't look at the signature.
func strict(raw, algorithm string) error {
	if len(raw) > maxToken {
		return malformed("longer than 8 KiB")
	}
	segments := strings.Split(raw, ".")
	if len(segments) != 3 {
		return malformed("not three segments")
	}
	var decoded [3][]byte
	for i, name := range []string{"header", "claims", "signature"} {
		data, err := base64.RawURLEncoding.Strict().DecodeString(segments[i])
		// The decoder passes over line breaks, which would give one token many spellings.
		if err != nil || len(data) == 0 || strings.ContainsAny(segments[i], "\r\n") {
			return malformed(name + " is not unpadded base64url")
		}
		decoded[i] = data
	}
	if err := strictHeader(decoded[0], algorithm); err != nil {
		return err
	}
	return strictClaims(decoded[1])
}

// strictHeader refuses any header that would choose the key or the rules: those are configured and never taken from a token
// (RFC 8725 §3.1, §3.10; RFC 7515 §4.1.11 for crit, RFC 7797 for b64).
func strictHeader(data []byte, algorithm string) error {
	header, err := object(data, "alg", "typ", "cty", "kid", "crit", "jwk", "jku", "x5u", "x5c", "x5t", "b64")
	if err != nil {
		return fmt.Errorf("%w (header)", err)
	}
	for _, name := range []string{"crit", "jwk", "jku", "x5u", "x5c", "b64"} {
		if _, ok := header[name]; ok {
			return malformed("header " + name + " is not accepted")
		}
	}
	if alg, ok := header["alg"].(string); !ok || alg != algorithm {
		return ErrAlgorithm
	}
	return nil
}

func strictClaims(data []byte) error {
	claims, err := object(data, "iss", "sub", "aud", "exp", "nbf", "iat", "jti", "scope")
	if err != nil {
		return fmt.Errorf("%w (claims)", err)
	}
	if _, ok := claims["exp"]; !ok {
		return malformed("exp is missing")
	}
	for _, name := range []string{"exp", "nbf", "iat"} {
		if value, ok := claims[name]; ok && !numericDate(value) {
			return malformed(name + " is not a time in seconds since 1970")
		}
	}
	for _, name := range []string{"iss", "sub"} {
		if value, ok := claims[name]; ok {
			if _, text := value.(string); !text {
				return malformed(name + " is not a string")
			}
		}
	}
	return nil
}

// numericDate says whether value is a NumericDate (RFC 7519 §2) from 1970 to 9999.
func numericDate(value any) bool {
	number, ok := value.(json.Number)
	if !ok {
		return false
	}
	seconds, err := number.Float64() // an error for 1e400
	return err == nil && !math.IsNaN(seconds) && seconds >= 0 && seconds <= maxTime
}

func malformed(what string) error { return fmt.Errorf("%w: %s", ErrMalformed, what) }
