package token

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSettingsThatAreRefused(t *testing.T) {
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := publicPEM(t, rsaKey().Public())
	private := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey())}))
	for name, c := range map[string]struct {
		settings Settings
		want     string
	}{
		"no algorithm":                 {Settings{Secret: secret}, "algorithm: must be one of HS256"},
		"none":                         {Settings{Algorithm: "none"}, "algorithm:"},
		"an algorithm in lower case":   {Settings{Algorithm: "hs256", Secret: secret}, "algorithm:"},
		"an algorithm not on the list": {Settings{Algorithm: "ES256", PublicKey: text}, "algorithm:"},
		"no secret":                    {Settings{Algorithm: "HS256"}, "secret: must have at least 32 characters, has 0"},
		"a secret of 31 characters":    {Settings{Algorithm: "HS512", Secret: secret[1:]}, "secret: must have at least 32 characters, has 31"},
		"32 bytes that are 16 letters": {Settings{Algorithm: "HS256", Secret: strings.Repeat("é", 16)}, "has 16"},
		"a public key as the secret":   {Settings{Algorithm: "HS256", PublicKey: text}, "secret:"},
		"no public key":                {Settings{Algorithm: "RS256", Secret: secret}, "public key: is empty"},
		"a private key":                {Settings{Algorithm: "RS256", PublicKey: private}, "public key: not one PEM block"},
		"two keys":                     {Settings{Algorithm: "RS256", PublicKey: text + text}, "public key: not one PEM block"},
		"a key of a curve":             {Settings{Algorithm: "RS256", PublicKey: publicPEM(t, curve.Public())}, "public key: not an RSA key"},
		"a key of 1,024 bits":          {Settings{Algorithm: "RS256", PublicKey: publicPEM(t, small.Public())}, "at least 2048 bits, has 1024"},
		"not a key at all":             {Settings{Algorithm: "RS256", PublicKey: "AAAA"}, "public key: not an X.509"},
		"not even base64":              {Settings{Algorithm: "RS256", PublicKey: "?"}, "public key: neither"},
		"a negative leeway":            {Settings{Algorithm: "HS256", Secret: secret, Leeway: -1}, "leeway:"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewKeys(c.settings)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if s := c.settings.Secret; s != "" && strings.Contains(err.Error(), s) {
				t.Errorf("the secret is in the error: %v", err)
			}
		})
	}
}

func TestThePublicKeyIsTakenInEverySpelling(t *testing.T) {
	text := publicPEM(t, rsaKey().Public())
	lines := strings.Split(strings.TrimSpace(text), "\n")
	bare := strings.Join(lines[1:len(lines)-1], "\n")
	raw := rsaSigned(t, "RS256", fmt.Sprintf(`{"exp":%d}`, now.Unix()+60))
	for name, spelling := range map[string]string{
		"PEM":                               text,
		"PEM in CRLF":                       strings.ReplaceAll(text, "\n", "\r\n"),
		"PEM on one line, \\n spelt out":    strings.ReplaceAll(text, "\n", `\n`),
		"PEM on one line, \\r\\n spelt out": strings.ReplaceAll(text, "\n", `\r\n`),
		"without its armour":                bare,
		"without its armour, on one line":   strings.ReplaceAll(bare, "\n", ""),
		"with space around it":              "  \n" + text + "\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := NewKeys(Settings{Algorithm: "RS256", PublicKey: spelling})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Verify(raw, keys, now); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestKeysPrintAsASecret(t *testing.T) {
	keys := hs256(t)
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(format, keys); got != "(secret)" {
			t.Errorf("%s prints %s", format, got)
		}
	}
}

func TestWhatMintSignsVerifies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Settings{
			Algorithm: rapid.SampledFrom([]string{"HS256", "HS384", "HS512"}).Draw(t, "algorithm"),
			Secret:    rapid.StringN(32, 64, -1).Draw(t, "secret"),
			Issuer:    rapid.SampledFrom([]string{"", "https://id.example"}).Draw(t, "issuer"),
			Audience:  rapid.SampledFrom([]string{"", "appliance"}).Draw(t, "audience"),
		}
		keys, err := NewKeys(s)
		if err != nil {
			t.Fatal(err)
		}
		subject := rapid.String().Draw(t, "subject")
		ttl := time.Duration(rapid.IntRange(1, 1e6).Draw(t, "ttl")) * time.Second
		raw, err := Mint(keys, subject, []string{"admin:read", "admin:write"}, now, ttl)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Verify(raw, keys, now.Add(ttl-time.Second))
		if err != nil || got.Subject != subject || !got.Has("admin:read") || !got.Has("admin:write") || got.Issuer != s.Issuer {
			t.Fatalf("%+v, %v", got, err)
		}
		if _, err := Verify(raw, keys, now.Add(ttl)); !errors.Is(err, ErrExpired) {
			t.Fatalf("after its time: %v", err)
		}
		at := rapid.IntRange(0, len(raw)-1).Draw(t, "at")
		bent := []byte(raw)
		bent[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		if _, err := Verify(string(bent), keys, now); err == nil {
			t.Fatalf("byte %d changed, and accepted", at)
		}
	})
}

func TestWhatCannotBeMinted(t *testing.T) {
	public := mustKeys(t, Settings{Algorithm: "RS256", PublicKey: publicPEM(t, rsaKey().Public())})
	if _, err := Mint(public, "ada", nil, now, time.Hour); !errors.Is(err, ErrCannotMint) {
		t.Errorf("with a public key: %v", err)
	}
	if _, err := Mint(Keys{}, "ada", nil, now, time.Hour); !errors.Is(err, ErrCannotMint) {
		t.Errorf("without a key: %v", err)
	}
	if _, err := Mint(hs256(t), "ada", nil, now, 0); err == nil {
		t.Error("for no time")
	}
}
