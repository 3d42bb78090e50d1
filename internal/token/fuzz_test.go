package token

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
)

// FuzzVerify holds three things: it never panics; what it accepts carries the right HMAC, computed here without a library;
// and what it accepts has one spelling only.
func FuzzVerify(f *testing.F) {
	for _, raw := range []string{claim(""), claim(`"scope":"admin:read"`), signed(`{"alg":"none"}`, `{"exp":1}`), "..", "a.b.c", ""} {
		f.Add(raw)
	}
	keys := hs256(f)
	f.Fuzz(func(t *testing.T, raw string) {
		if _, err := Verify(raw, keys, now); err != nil {
			return
		}
		text, signature, _ := strings.Cut(raw[strings.Index(raw, ".")+1:], ".")
		text = raw[:strings.Index(raw, ".")+1] + text
		got, err := base64.RawURLEncoding.Strict().DecodeString(signature)
		if err != nil || !hmac.Equal(got, hmacOf("HS256", secret, text)) {
			t.Fatalf("accepted without its HMAC: %q", raw)
		}
		if b64(got) != signature {
			t.Fatalf("accepted in a second spelling: %q", raw)
		}
	})
}

// FuzzClaims signs any claims rightly: Verify accepts them only when Go's decoder reads the same exp and scope from them.
func FuzzClaims(f *testing.F) {
	for _, text := range []string{`{"exp":1900000000}`, `{"exp":1900000000,"scope":"a b"}`, `{"exp":1,"exp":1900000000}`, `{"Exp":1900000000}`, `{"exp":1e400}`, `{}`, `[`} {
		f.Add(text)
	}
	keys := hs256(f)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Verify(signed(plainHeader, text), keys, now)
		if err != nil {
			return
		}
		var read struct {
			Exp   float64
			Scope any
		}
		if err := json.Unmarshal([]byte(text), &read); err != nil {
			t.Fatalf("accepted what isn't JSON: %q: %v", text, err)
		}
		if int64(read.Exp) != got.ExpiresAt.Unix() {
			t.Fatalf("exp is read as %v and as %v: %q", read.Exp, got.ExpiresAt, text)
		}
		scope, _ := read.Scope.(string)
		for _, name := range got.Scopes {
			if !strings.Contains(" "+scope+" ", " "+name+" ") {
				t.Fatalf("scope %q out of %q", name, text)
			}
		}
	})
}
