package token

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"hash"
	"strings"
	"sync"
	"testing"
	"time"
)

const secret = "0123456789abcdef0123456789abcdef"

// now is the moment of the tests; the tokens below are written around it.
var now = time.Unix(1_800_000_000, 0)

func b64(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

func hmacOf(algorithm, key, text string) []byte {
	hashes := map[string]func() hash.Hash{"HS256": sha256.New, "HS384": sha512.New384, "HS512": sha512.New}
	mac := hmac.New(hashes[algorithm], []byte(key))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// signed makes an HS256 token of any header and claims by hand, with the standard library alone.
func signed(header, claims string) string {
	text := b64([]byte(header)) + "." + b64([]byte(claims))
	return text + "." + b64(hmacOf("HS256", secret, text))
}

const plainHeader = `{"alg":"HS256","typ":"JWT"}`

// claim makes an HS256 token that is good for an hour, with more claims.
func claim(more string) string {
	if more != "" {
		more = "," + more
	}
	return signed(plainHeader, fmt.Sprintf(`{"sub":"ada","exp":%d%s}`, now.Unix()+3600, more))
}

func mustKeys(t testing.TB, s Settings) Keys {
	t.Helper()
	keys, err := NewKeys(s)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func hs256(t testing.TB) Keys {
	t.Helper()
	return mustKeys(t, Settings{Algorithm: "HS256", Secret: secret, Leeway: DefaultLeeway})
}

// rsaKey is made once: 2,048 bits take a moment.
var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func publicPEM(t testing.TB, key any) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// rsaSigned makes an RS token by hand.
func rsaSigned(t testing.TB, algorithm string, claims string) string {
	t.Helper()
	text := b64([]byte(`{"alg":"`+algorithm+`"}`)) + "." + b64([]byte(claims))
	h := map[string]crypto.Hash{"RS256": crypto.SHA256, "RS384": crypto.SHA384, "RS512": crypto.SHA512}[algorithm]
	digest := h.New()
	digest.Write([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, rsaKey(), h, digest.Sum(nil))
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + b64(signature)
}

// sign again puts the right signature behind two segments that a test has bent.
func signAgain(segments string) string {
	return segments + "." + b64(hmacOf("HS256", secret, segments))
}

func segments(raw string) (header, claims, signature string) {
	s := strings.Split(raw, ".")
	return s[0], s[1], s[2]
}
