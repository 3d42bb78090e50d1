package token

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestATokenMintedWithOpensslIsVerified(t *testing.T) {
	// The recipe that operators have: printf of header and claims, base64 with tr, an HMAC, all without a library.
	claims := fmt.Sprintf(`{"sub":"ada","scope":"admin:read admin:write","exp":%d}`, now.Unix()+3600)
	got, err := Verify(signed(plainHeader, claims), hs256(t), now)
	if err != nil {
		t.Fatal(err)
	}
	if got.Subject != "ada" || !slices.Equal(got.Scopes, []string{"admin:read", "admin:write"}) || !got.ExpiresAt.Equal(now.Add(time.Hour)) {
		t.Errorf("principal %+v", got)
	}
	if !got.Has("admin:write") || got.Has("admin") {
		t.Errorf("Has: %v", got.Scopes)
	}
}

func TestEveryAlgorithmVerifiesItsOwnAndNoOther(t *testing.T) {
	exp := strconv.FormatInt(now.Unix()+60, 10)
	tokens := map[string]string{}
	for _, alg := range []string{"HS256", "HS384", "HS512"} {
		text := b64([]byte(`{"alg":"`+alg+`"}`)) + "." + b64([]byte(`{"exp":`+exp+`}`))
		tokens[alg] = text + "." + b64(hmacOf(alg, secret, text))
	}
	for _, alg := range []string{"RS256", "RS384", "RS512"} {
		tokens[alg] = rsaSigned(t, alg, `{"exp":`+exp+`}`)
	}
	for _, configured := range Algorithms() {
		keys := mustKeys(t, Settings{Algorithm: configured, Secret: secret, PublicKey: publicPEM(t, rsaKey().Public())})
		for alg, raw := range tokens {
			_, err := Verify(raw, keys, now)
			if alg == configured && err != nil {
				t.Errorf("%s: %v", alg, err)
			}
			if alg != configured && !errors.Is(err, ErrAlgorithm) {
				t.Errorf("%s under %s: %v", alg, configured, err)
			}
		}
	}
}

func TestWhatIsRefusedAndWhy(t *testing.T) {
	header, claims, signature := segments(claim(""))
	text := header + "." + claims
	exp := now.Unix() + 3600
	times := func(body string) string { return signed(plainHeader, body) }
	heads := func(head string) string { return signed(head, fmt.Sprintf(`{"exp":%d}`, exp)) }
	for name, c := range map[string]struct {
		raw  string
		want error
	}{
		// JW-01
		"alg none":                             {heads(`{"alg":"none"}`), ErrAlgorithm},
		"alg None":                             {heads(`{"alg":"None"}`), ErrAlgorithm},
		"alg nOnE":                             {heads(`{"alg":"nOnE"}`), ErrAlgorithm},
		"alg hs256":                            {heads(`{"alg":"hs256"}`), ErrAlgorithm},
		"alg is an array":                      {heads(`{"alg":["HS256"]}`), ErrAlgorithm},
		"no alg":                               {heads(`{"typ":"JWT"}`), ErrAlgorithm},
		"alg twice, none first":                {heads(`{"alg":"none","alg":"HS256"}`), ErrMalformed},
		"alg twice, none last":                 {heads(`{"alg":"HS256","alg":"none"}`), ErrMalformed},
		"alg twice, once escaped":              {heads(`{"alg":"HS256","\u0061lg":"none"}`), ErrMalformed},
		"ALG beside alg":                       {heads(`{"alg":"HS256","ALG":"none"}`), ErrMalformed},
		"Alg alone":                            {heads(`{"Alg":"HS256"}`), ErrMalformed},
		"an empty signature":                   {text + ".", ErrMalformed},
		"no signature":                         {text, ErrMalformed},
		"a wrong signature":                    {text + "." + b64(hmacOf("HS256", secret+"x", text)), ErrSignature},
		"a signature cut short":                {text + "." + signature[:40], ErrSignature},
		"the signature of another token":       {text + "." + strings.Split(claim(`"a":1`), ".")[2], ErrSignature},
		"claims that were changed":             {header + "." + b64([]byte(fmt.Sprintf(`{"sub":"eve","exp":%d}`, exp))) + "." + signature, ErrSignature},
		"an expired token of another's making": {text[:len(header)+1] + b64([]byte(`{"exp":1}`)) + "." + signature, ErrSignature},

		// JW-12 and what else would choose the key or the rules
		"a jwk":           {heads(`{"alg":"HS256","jwk":{"kty":"oct","k":"AA"}}`), ErrMalformed},
		"a jku":           {heads(`{"alg":"HS256","jku":"https://evil.example/keys"}`), ErrMalformed},
		"an x5u":          {heads(`{"alg":"HS256","x5u":"https://evil.example/cert"}`), ErrMalformed},
		"an x5c":          {heads(`{"alg":"HS256","x5c":["AA"]}`), ErrMalformed},
		"a crit":          {heads(`{"alg":"HS256","crit":["exp"]}`), ErrMalformed},
		"an empty crit":   {heads(`{"alg":"HS256","crit":[]}`), ErrMalformed},
		"a crit of null":  {heads(`{"alg":"HS256","crit":null}`), ErrMalformed},
		"b64 false":       {heads(`{"alg":"HS256","b64":false}`), ErrMalformed},
		"JWK in capitals": {heads(`{"alg":"HS256","JWK":{}}`), ErrMalformed},

		// the form
		"nothing":                          {"", ErrMalformed},
		"dots":                             {"..", ErrMalformed},
		"four segments":                    {claim("") + ".x", ErrMalformed},
		"five segments, as encryption has": {"a.b.c.d.e", ErrMalformed},
		"an empty header":                  {signAgain("." + claims), ErrMalformed},
		"padding":                          {signAgain(b64([]byte(`{"alg":"HS256"}`)) + "." + b64([]byte(fmt.Sprintf(`{"exp":%d}`, exp))) + "="), ErrMalformed},
		"the standard alphabet":            {signAgain(header + "." + strings.NewReplacer("-", "+", "_", "/").Replace(b64([]byte(fmt.Sprintf(`{"exp":%d,"x":"~~~???>>>"}`, exp))))), ErrMalformed},
		"spare bits":                       {text + "." + signature[:42] + string(signature[42]+1), ErrMalformed},
		"a line break inside":              {header[:4] + "\n" + text[4:] + "." + signature, ErrMalformed},
		"a line break behind":              {text + "." + signature + "\n", ErrMalformed},
		"a space before":                   {" " + text + "." + signature, ErrMalformed},
		"longer than 8 KiB":                {claim(`"x":"` + strings.Repeat("a", 8<<10) + `"`), ErrMalformed},

		// one object each, its names unique
		"claims that are an array":  {times(`[1]`), ErrMalformed},
		"claims that are null":      {times(`null`), ErrMalformed},
		"two objects":               {times(fmt.Sprintf(`{"exp":%d}{}`, exp)), ErrMalformed},
		"text behind the object":    {times(fmt.Sprintf(`{"exp":%d} x`, exp)), ErrMalformed},
		"an object cut short":       {times(fmt.Sprintf(`{"exp":%d`, exp)), ErrMalformed},
		"a trailing comma":          {times(fmt.Sprintf(`{"exp":%d,}`, exp)), ErrMalformed},
		"bytes that are not UTF-8":  {times(fmt.Sprintf("{\"exp\":%d,\"x\":\"\xff\"}", exp)), ErrMalformed},
		"a byte order mark":         {times(fmt.Sprintf("\ufeff{\"exp\":%d}", exp)), ErrMalformed},
		"exp twice":                 {times(fmt.Sprintf(`{"exp":1,"exp":%d}`, exp)), ErrMalformed},
		"Exp beside exp":            {times(fmt.Sprintf(`{"exp":%d,"Exp":1}`, exp)), ErrMalformed},
		"EXP alone":                 {times(fmt.Sprintf(`{"EXP":%d}`, exp)), ErrMalformed},
		"Scope in a capital":        {claim(`"Scope":"admin:write"`), ErrMalformed},
		"ſcope, which folds to it":  {claim(`"ſcope":"admin:write"`), ErrMalformed},
		"a name twice, deep inside": {claim(`"a":{"b":[{"c":1,"c":2}]}`), ErrMalformed},
		"a header's name twice":     {heads(`{"alg":"HS256","kid":"a","kid":"b"}`), ErrMalformed},
		"a number no double holds":  {claim(`"x":1e400`), ErrMalformed},
		"nested beyond reason":      {claim(`"x":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000)), ErrMalformed},

		// JW-06
		"no exp":            {times(`{"sub":"ada"}`), ErrMalformed},
		"exp 0":             {times(`{"exp":0}`), ErrMalformed},
		"exp −1":            {times(`{"exp":-1}`), ErrMalformed},
		"exp 1e300":         {times(`{"exp":1e300}`), ErrMalformed},
		"exp 1e400":         {times(`{"exp":1e400}`), ErrMalformed},
		"exp is null":       {times(`{"exp":null}`), ErrMalformed},
		"exp is a string":   {times(fmt.Sprintf(`{"exp":"%d"}`, exp)), ErrMalformed},
		"exp is an array":   {times(fmt.Sprintf(`{"exp":[%d]}`, exp)), ErrMalformed},
		"exp is true":       {times(`{"exp":true}`), ErrMalformed},
		"exp was an hour":   {times(fmt.Sprintf(`{"exp":%d}`, now.Unix()-3600)), ErrExpired},
		"exp in 1970":       {times(`{"exp":1}`), ErrExpired},
		"nbf in the future": {claim(fmt.Sprintf(`"nbf":%d`, now.Unix()+60)), ErrNotYetValid},
		"nbf is 1e300":      {claim(`"nbf":1e300`), ErrMalformed},
		"nbf is a string":   {claim(`"nbf":"0"`), ErrMalformed},
		"iat is a string":   {claim(`"iat":"0"`), ErrMalformed},
		"sub is a number":   {signed(plainHeader, fmt.Sprintf(`{"sub":7,"exp":%d}`, exp)), ErrMalformed},
		"iss is an array":   {claim(`"iss":["a"]`), ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Verify(c.raw, hs256(t), now)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %+v, %v, want %v", got, err, c.want)
			}
			if got.Subject != "" || got.Scopes != nil || got.Claims != nil {
				t.Errorf("a refused token gives %+v", got)
			}
			if err != nil && len(err.Error()) > 200 {
				t.Errorf("an error of %d bytes: %v", len(err.Error()), err)
			}
		})
	}
}

func TestWhatIsAccepted(t *testing.T) {
	for name, raw := range map[string]string{
		"no typ":                              signed(`{"alg":"HS256"}`, fmt.Sprintf(`{"exp":%d}`, now.Unix()+1)),
		"a kid, which chooses nothing":        signed(`{"alg":"HS256","kid":"../../etc/passwd"}`, fmt.Sprintf(`{"exp":%d}`, now.Unix()+1)),
		"spaces around the objects":           signed(" "+plainHeader+"\n", fmt.Sprintf("\t{ \"exp\" : %d }\n", now.Unix()+1)),
		"a fraction in exp":                   signed(plainHeader, fmt.Sprintf(`{"exp":%d.5}`, now.Unix()+1)),
		"an exponent in exp":                  signed(plainHeader, `{"exp":1.9e9}`),
		"iat in the future, which is no rule": claim(fmt.Sprintf(`"iat":%d`, now.Unix()+9999)),
		"nbf in the past":                     claim(fmt.Sprintf(`"nbf":%d`, now.Unix()-9999)),
		"exp within the leeway":               signed(plainHeader, fmt.Sprintf(`{"exp":%d}`, now.Unix()-29)),
		"nbf within the leeway":               claim(fmt.Sprintf(`"nbf":%d`, now.Unix()+29)),
		"claims of any shape":                 claim(`"realm":{"roles":["a",{"b":null}]},"x":[[]],"y":1e308`),
		"an issuer, when none is configured":  claim(`"iss":"anybody","aud":["x",1]`),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Verify(raw, hs256(t), now)
			if err != nil {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestAKeyOfOneKindIsNoneOfTheOther(t *testing.T) { // JW-02
	text := publicPEM(t, rsaKey().Public())
	keys := mustKeys(t, Settings{Algorithm: "RS256", PublicKey: text})
	for name, key := range map[string]string{
		"the text of the key":                 text,
		"the text without its last line feed": strings.TrimSpace(text),
	} {
		head := b64([]byte(plainHeader)) + "." + b64([]byte(fmt.Sprintf(`{"exp":%d}`, now.Unix()+60)))
		if _, err := Verify(head+"."+b64(hmacOf("HS256", key, head)), keys, now); !errors.Is(err, ErrAlgorithm) {
			t.Errorf("an HMAC made with %s: %v", name, err)
		}
		lie := b64([]byte(`{"alg":"RS256"}`)) + "." + b64([]byte(fmt.Sprintf(`{"exp":%d}`, now.Unix()+60)))
		if _, err := Verify(lie+"."+b64(hmacOf("HS256", key, lie)), keys, now); !errors.Is(err, ErrSignature) {
			t.Errorf("an HMAC made with %s that says RS256: %v", name, err)
		}
	}
}

func TestScopes(t *testing.T) { // JW-07
	for name, c := range map[string]struct {
		claims string
		want   []string
	}{
		"one":                           {`"scope":"events:write"`, []string{"events:write"}},
		"two":                           {`"scope":"events:write admin:read"`, []string{"events:write", "admin:read"}},
		"double spaces":                 {`"scope":" events:write  admin:read "`, []string{"events:write", "admin:read"}},
		"a longer one is another":       {`"scope":"events:write2"`, []string{"events:write2"}},
		"a comma doesn't separate":      {`"scope":"events:write,admin:read"`, []string{"events:write,admin:read"}},
		"a tab doesn't separate":        {`"scope":"events:write\tadmin:read"`, []string{"events:write\tadmin:read"}},
		"an array grants nothing":       {`"scope":["events:write"]`, nil},
		"a number grants nothing":       {`"scope":7`, nil},
		"scp grants nothing":            {`"scp":["events:write"]`, nil},
		"scopes, in plural, grant none": {`"scopes":"events:write"`, nil},
		"an empty one":                  {`"scope":""`, nil},
		"none":                          {`"x":1`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Verify(claim(c.claims), hs256(t), now)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Scopes, c.want) {
				t.Errorf("scopes %q, want %q", got.Scopes, c.want)
			}
			if got.Has("events:write") != slices.Contains(c.want, "events:write") || got.Has("") {
				t.Errorf("Has by %q", got.Scopes)
			}
		})
	}
}

func TestAudience(t *testing.T) { // JW-08
	keys := mustKeys(t, Settings{Algorithm: "HS256", Secret: secret, Audience: "appliance"})
	for name, c := range map[string]struct {
		claims string
		ok     bool
	}{
		"the string":                   {`"aud":"appliance"`, true},
		"an array that holds it":       {`"aud":["x","appliance"]`, true},
		"an empty array":               {`"aud":[]`, false},
		"an array with a number in it": {`"aud":["appliance",1]`, false},
		"absent":                       {`"x":1`, false},
		"in another case":              {`"aud":"Appliance"`, false},
		"a longer one":                 {`"aud":"appliance2"`, false},
		"a number":                     {`"aud":1`, false},
		"null":                         {`"aud":null`, false},
		"an object":                    {`"aud":{"appliance":1}`, false},
		"a list in a string":           {`"aud":"x appliance"`, false},
		"an empty string":              {`"aud":""`, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Verify(claim(c.claims), keys, now)
			if c.ok && err != nil || !c.ok && !errors.Is(err, ErrAudience) && !errors.Is(err, ErrMalformed) {
				t.Errorf("err %v, want ok = %v", err, c.ok)
			}
		})
	}
}

func TestIssuer(t *testing.T) {
	keys := mustKeys(t, Settings{Algorithm: "HS256", Secret: secret, Issuer: "https://id.example"})
	for name, c := range map[string]struct {
		claims string
		ok     bool
	}{
		"the issuer":                {`"iss":"https://id.example"`, true},
		"with a slash more":         {`"iss":"https://id.example/"`, false},
		"in another case":           {`"iss":"https://ID.example"`, false},
		"absent":                    {`"x":1`, false},
		"empty":                     {`"iss":""`, false},
		"another, of the same size": {`"iss":"https://ie.example"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Verify(claim(c.claims), keys, now)
			if c.ok && err != nil || !c.ok && !errors.Is(err, ErrIssuer) && !errors.Is(err, ErrMalformed) {
				t.Errorf("err %v, want ok = %v", err, c.ok)
			}
		})
	}
}

func TestTheLeewayIsTheConfiguredOne(t *testing.T) {
	exact := mustKeys(t, Settings{Algorithm: "HS256", Secret: secret})
	raw := signed(plainHeader, fmt.Sprintf(`{"exp":%d}`, now.Unix()))
	if _, err := Verify(raw, exact, now.Add(-time.Second)); err != nil {
		t.Errorf("a second before: %v", err)
	}
	if _, err := Verify(raw, exact, now); !errors.Is(err, ErrExpired) {
		t.Errorf("at exp: %v", err)
	}
	if _, err := Verify(raw, hs256(t), now.Add(29*time.Second)); err != nil {
		t.Errorf("29 s after, with 30 s: %v", err)
	}
	if _, err := Verify(raw, hs256(t), now.Add(30*time.Second)); !errors.Is(err, ErrExpired) {
		t.Errorf("30 s after, with 30 s: %v", err)
	}
}

func TestTheZeroKeysAcceptNothing(t *testing.T) {
	for _, raw := range []string{claim(""), signed(`{"alg":""}`, `{"exp":1900000000}`), ""} {
		if _, err := Verify(raw, Keys{}, now); err == nil {
			t.Errorf("%q was accepted without a key", raw)
		}
	}
}
