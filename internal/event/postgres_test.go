package event_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"appliance/internal/event"
	"appliance/internal/testservices"
)

// jsonb asks a real PostgreSQL about JSON texts.
type jsonb struct{ conn *pgx.Conn }

func newJSONB(t testing.TB) jsonb {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), testservices.Postgres(t))
	if err != nil {
		t.Fatalf("connect to PostgreSQL: %v", err)
	}
	t.Cleanup(func() {
		if err := conn.Close(context.Background()); err != nil {
			t.Errorf("close the connection: %v", err)
		}
	})
	return jsonb{conn}
}

// holds returns "" or the SQLSTATE with which `$1::jsonb` refuses the text.
func (j jsonb) holds(t testing.TB, text []byte) string {
	t.Helper()
	const oid = 3802 // jsonb
	_, err := j.conn.PgConn().ExecParams(context.Background(), "SELECT $1::jsonb IS NOT NULL",
		[][]byte{text}, []uint32{oid}, nil, nil).Close()
	var refused *pgconn.PgError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &refused) && (strings.HasPrefix(refused.Code, "22") || refused.Code == "54001"):
		return refused.Code
	}
	t.Fatalf("ask PostgreSQL about %.200q: %v", text, err)
	return ""
}

// agree fails the test where the scanner and PostgreSQL differ. Deeper than MaxDepth only the scanner refuses.
func (j jsonb) agree(t testing.TB, text []byte) {
	t.Helper()
	found, deep := event.Scan(text)
	if deep {
		return
	}
	if code := j.holds(t, text); (code == "") != (found == "") {
		t.Errorf("%.300q: PostgreSQL says %q, the scanner %q", text, code, found)
	}
}

func TestScannerAndPostgresAgreeOnTheCorpus(t *testing.T) {
	server := newJSONB(t)
	cases := corpus(t, "jsonb")
	for name, text := range texts() {
		cases[name] = []byte(text)
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			server.agree(t, text)
			found, deep := event.Scan(text)
			held, refused := strings.HasPrefix(name, "held"), strings.HasPrefix(name, "refused")
			switch {
			case held && found != "":
				t.Errorf("refused for %s", found)
			case refused && found == "":
				t.Error("taken for storable")
			case !held && !refused && !deep:
				t.Errorf("found %q, want the limit of nesting", found)
			}
		})
	}
}

// The limit of nesting is far below the real one, even of a server with the least stack that can be configured.
func TestTheDeepestTextIsHeldByTheSmallestStack(t *testing.T) {
	server := newJSONB(t)
	if _, err := server.conn.Exec(context.Background(), "SET max_stack_depth = '100kB'"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"held nested 512 deep", "held objects nested 512 deep"} {
		if code := server.holds(t, []byte(texts()[name])); code != "" {
			t.Errorf("%s: %s", name, code)
		}
	}
	if code := server.holds(t, []byte(strings.Repeat("[", 20000)+strings.Repeat("]", 20000))); code != "54001" {
		t.Errorf("20,000 levels gave %q, want 54001: the limit is not where it was", code)
	}
}

// fragments are what generated texts are made of: whole tokens, halves of tokens, and bytes that have no place.
func fragments() []string {
	return strings.Split("{|}|[|]|:|,|\"|\\|\"a\"|\"\"|\"b\":|{\"c\":1}|[1,2]|true|false|null|nul|0|-|1|01|1.5|.|e|E+|e-5|1e131071|1e131072|"+
		"0e-16383|0e-16384|12e131070|0.00012e131075| |\n|\t|\x01|\x1f|\x7f|\\u0000|\\u0041|\\ud83d|\\ude00|\\ud83d\\ude00|\\uFFFF|\\n|\\/|"+
		"\\x|\\u12|é|\xff|\xed\xa0\x80|\xf0\x9f\x98\x80|\xc0\x80|\ufeff|\u00a0|x|NaN|//|\x00", "|")
}

// TestScannerAndPostgresAgreeOnGeneratedTexts mixes fragments, and damages texts that were sound.
func TestScannerAndPostgresAgreeOnGeneratedTexts(t *testing.T) {
	server := newJSONB(t)
	random := rand.New(rand.NewPCG(1, 2)) // always the same texts: a failure can be repeated
	tokens := fragments()
	sound := 0
	for range 4000 {
		var b strings.Builder
		value(&b, random, tokens, 0)
		text := []byte(b.String())
		for range random.IntN(3) {
			at := random.IntN(len(text) + 1)
			text = append(text[:at:at], append([]byte(tokens[random.IntN(len(tokens))]), text[at:]...)...)
		}
		if random.IntN(4) == 0 {
			text = text[:random.IntN(len(text)+1)]
		}
		server.agree(t, text)
		if found, _ := event.Scan(text); found == "" {
			sound++
		}
	}
	if sound < 400 || sound > 3600 {
		t.Errorf("%d of 4,000 texts are sound: too one-sided to prove anything", sound)
	}
}

// value writes a JSON value whose strings and numbers are now and then broken.
func value(b *strings.Builder, random *rand.Rand, tokens []string, depth int) {
	switch n := random.IntN(8); {
	case n < 2 && depth < 4:
		b.WriteString("{")
		for i := range random.IntN(3) {
			if i > 0 {
				b.WriteString(",")
			}
			text(b, random, tokens)
			b.WriteString(":")
			value(b, random, tokens, depth+1)
		}
		b.WriteString("}")
	case n < 4 && depth < 4:
		b.WriteString("[")
		for i := range random.IntN(4) {
			if i > 0 {
				b.WriteString(", ")
			}
			value(b, random, tokens, depth+1)
		}
		b.WriteString("]")
	case n < 6:
		text(b, random, tokens)
	default:
		numbers := []string{"0", "-1", "1.50", "1e131071", "0.1e131072", "1e-16383", "0e16384", "-0.0", "123456789012345678901234567890", "1E5", "true"}
		if random.IntN(20) == 0 {
			numbers = []string{"1e131072", "1.5e-16383", "00", "1.", "1e1073741823", "-"}
		}
		b.WriteString(numbers[random.IntN(len(numbers))])
	}
}

func text(b *strings.Builder, random *rand.Rand, tokens []string) {
	b.WriteString(`"`)
	for range random.IntN(4) {
		good := []string{"abc", "é", "€uro", "😀", `\n`, `\u00e9`, `\ud83d\ude00`, `\\`, `\"`, "12345678", " "}
		if random.IntN(30) == 0 {
			good = tokens
		}
		b.WriteString(good[random.IntN(len(good))])
	}
	b.WriteString(`"`)
}

func FuzzScannerAndPostgresAgree(f *testing.F) {
	server := newJSONB(f)
	for _, text := range corpus(f, "jsonb") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) { server.agree(t, text) })
}
