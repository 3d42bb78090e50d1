package token

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// DefaultLeeway is the skew between two clocks that exp and nbf are forgiven. It is also the time for which a token that
// was meant to be over still works: nothing here can revoke one.
const DefaultLeeway = 30 * time.Second

const (
	minSecret  = 32   // characters
	minModulus = 2048 // bits, RFC 7518 §3.3
)

// Settings say which tokens are accepted.
type Settings struct {
	Algorithm string // HS256, HS384, HS512, RS256, RS384 or RS512: pinned, a token's own alg is compared and never adopted
	Secret    string // of the HS algorithms, at least 32 characters
	PublicKey string // of the RS algorithms: an X.509 SubjectPublicKeyInfo, PEM or its bare base64; "\n" may be spelt out
	Issuer    string // "" accepts any
	Audience  string // "" accepts any
	Leeway    time.Duration
}

// Keys is what a token is verified with. The zero Keys accepts none. It prints as "(secret)".
type Keys struct {
	algorithm        string
	key              any // []byte or *rsa.PublicKey, by the algorithm
	issuer, audience string
	leeway           time.Duration
}

// String keeps the secret out of logs.
func (Keys) String() string { return "(secret)" }

// GoString keeps the secret out of logs, also of those that print with %#v.
func (Keys) GoString() string { return "(secret)" }

// Algorithms returns the names that Settings.Algorithm can have.
func Algorithms() []string { return []string{"HS256", "HS384", "HS512", "RS256", "RS384", "RS512"} }

// NewKeys checks settings. Its errors name the setting and never its value.
func NewKeys(s Settings) (Keys, error) {
	if !slices.Contains(Algorithms(), s.Algorithm) {
		return Keys{}, fmt.Errorf("algorithm: must be one of %s", strings.Join(Algorithms(), ", "))
	}
	if s.Leeway < 0 {
		return Keys{}, errors.New("leeway: must not be negative")
	}
	key, err := s.verifyingKey()
	if err != nil {
		return Keys{}, err
	}
	return Keys{algorithm: s.Algorithm, key: key, issuer: s.Issuer, audience: s.Audience, leeway: s.Leeway}, nil
}

// verifyingKey takes the one kind of key that the algorithm uses. That the kinds are apart is what refuses an HMAC made with
// the text of a public key.
func (s Settings) verifyingKey() (any, error) {
	if strings.HasPrefix(s.Algorithm, "RS") {
		return publicKey(s.PublicKey)
	}
	return secretKey(s.Secret)
}

func secretKey(secret string) ([]byte, error) {
	if n := utf8.RuneCountInString(secret); n < minSecret {
		return nil, fmt.Errorf("secret: must have at least %d characters, has %d", minSecret, n)
	}
	return []byte(secret), nil
}

func publicKey(text string) (*rsa.PublicKey, error) {
	der, err := spki(text)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, errors.New("public key: not an X.509 SubjectPublicKeyInfo")
	}
	key, ok := parsed.(*rsa.PublicKey)
	if !ok {
		return nil, errors.New("public key: not an RSA key")
	}
	if bits := key.N.BitLen(); bits < minModulus {
		return nil, fmt.Errorf("public key: must have at least %d bits, has %d", minModulus, bits)
	}
	return key, nil
}

// spki takes PEM, PEM on one line with "\n" spelt out as .env files have it, and PEM without its armour.
func spki(text string) ([]byte, error) {
	text = strings.TrimSpace(strings.ReplaceAll(strings.ReplaceAll(text, `\r`, ""), `\n`, "\n"))
	if text == "" {
		return nil, errors.New("public key: is empty")
	}
	if strings.HasPrefix(text, "-----BEGIN") {
		block, rest := pem.Decode([]byte(text))
		if block == nil || block.Type != "PUBLIC KEY" || strings.TrimSpace(string(rest)) != "" {
			return nil, errors.New(`public key: not one PEM block of type "PUBLIC KEY"`)
		}
		return block.Bytes, nil
	}
	der, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil, errors.New("public key: neither PEM nor base64")
	}
	return der, nil
}
