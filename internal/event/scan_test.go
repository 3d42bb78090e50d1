package event

import (
	"encoding/json"
	"strings"
	"testing"
)

func scan(text string) (flaw, int) {
	s := scanner{src: []byte(text)}
	return s.document(), s.pos
}

func TestScannerNamesTheFlawAndItsPlace(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want flaw
		at   int
	}{
		"nothing at all":                            {``, noValue, 0},
		"white space alone":                         {" \n", noValue, 2},
		"a byte order mark":                         {"\ufeff{}", strayByte, 0},
		"an array that ends early":                  {`[1,`, cutShort, 3},
		"an object that ends after its name":        {`{"a"`, cutShort, 4},
		"a string that ends early":                  {`"abc`, cutShort, 4},
		"an escape that ends early":                 {`"abc\`, cutShort, 4},
		"NaN":                                       {`[NaN]`, strayByte, 1},
		"a literal in capitals":                     {`True`, strayByte, 0},
		"a literal cut short":                       {`[nul]`, badLiteral, 1},
		"a leading zero":                            {`[-012]`, leadingZero, 2},
		"a plus sign":                               {`+1`, strayByte, 0},
		"a point in front":                          {`.5`, strayByte, 0},
		"a point at the end":                        {`[5.]`, badNumber, 3},
		"a minus alone":                             {`-`, badNumber, 1},
		"an exponent without digits":                {`1e+`, badNumber, 3},
		"a line end in a string":                    {"\"a\nb\"", rawControl, 2},
		"an unknown escape":                         {`"1234567\x41"`, badEscape, 8},
		"an escape with a bad digit":                {`"\u00g0"`, badEscape, 1},
		"a name without quotes":                     {`{a:1}`, wantName, 1},
		"a comma before the closing brace":          {`{"a":1,}`, wantName, 7},
		"no colon":                                  {`{"a" 1}`, wantColon, 5},
		"no comma in an object":                     {`{"a":1 "b":2}`, wantCommaOrBrace, 7},
		"no comma in an array":                      {`[1 2]`, wantCommaOrBracket, 3},
		"a closing brace for a bracket":             {`[1}`, wantCommaOrBracket, 2},
		"a comma before the closing bracket":        {`[1,]`, strayByte, 3},
		"a second value":                            {`{}{}`, trailingText, 2},
		"the escape of U+0000":                      {`{"m":"a\u0000b"}`, nulEscape, 7},
		"the escape of U+0000 in a name":            {`{"a\u0000b":1}`, nulEscape, 3},
		"a high surrogate alone":                    {`"\ud83d"`, loneSurrogate, 1},
		"a low surrogate alone, in a name":          {`{"\udfaa":0}`, loneSurrogate, 2},
		"surrogates swapped":                        {`"\ude00\ud83d"`, loneSurrogate, 1},
		"a high surrogate before a plain escape":    {`"\ud83d\n"`, loneSurrogate, 1},
		"a pair and another low":                    {`"\ud83d\ude00\ude00"`, loneSurrogate, 13},
		"a byte that is not UTF-8":                  {"\"12345678\xff\"", notUTF8, 9},
		"an encoded surrogate":                      {"\"\xed\xa0\x80\"", notUTF8, 1},
		"an overlong encoding":                      {"\"\xc0\x80\"", notUTF8, 1},
		"the 513th level":                           {strings.Repeat("[", 513), tooDeep, 512},
		"a number beyond numeric":                   {`[1e131072]`, numberOverflow, 1},
		"a number finer than numeric":               {`[1e-16384]`, numberTooFine, 1},
		"an exponent beyond every integer":          {`1e99999999999999999999999`, numberOverflow, 0},
		"an escaped backslash before u0000":         {`"\\u0000"`, sound, 9},
		"an escaped quote on the eighth byte":       {`"1234567\"89"`, sound, 13},
		"a pair of surrogates":                      {`"\uD83D\uDE00"`, sound, 14},
		"zero with an exponent":                     {`0e131072`, sound, 8},
		"white space on both ends":                  {" \t\r\n1\n", sound, 6},
		"an empty object inside an array":           {`[{},[],""]`, sound, 10},
		"a noncharacter, which jsonb does not mind": {`"\uffff"`, sound, 8},
	} {
		t.Run(name, func(t *testing.T) {
			if f, at := scan(c.text); f != c.want || at != c.at {
				t.Errorf("found %q at %d, want %q at %d", f, at, c.want, c.at)
			}
		})
	}
}

func TestEveryFlawHasWords(t *testing.T) {
	for f := sound; f <= numberTooFine; f++ {
		if strings.Contains(f.String(), "unknown flaw") {
			t.Errorf("flaw %d has no words", f)
		}
	}
	if !strings.Contains((numberTooFine + 1).String(), "unknown flaw") {
		t.Error("a flaw was added behind the last one that is tested here")
	}
}

// What the standard library calls JSON is the same language, but for what jsonb cannot hold.
func FuzzScannerAgreesWithEncodingJSON(f *testing.F) {
	for _, text := range []string{`{"a":[1,-0.5e+3,true,null,"\u00e9\\"]}`, `[01]`, `"\ud800"`, "\"\xff\"", `{"a":1,}`, `[1e999999]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s := scanner{src: text}
		found := s.document()
		if found.storage() {
			return // not every one of these is JSON: the scanner stops at the first flaw
		}
		if valid := json.Valid(text); valid != (found == sound) {
			t.Errorf("%q: encoding/json says %v, the scanner %q at %d", text, valid, found, s.pos)
		}
		if s.pos > len(text) {
			t.Errorf("%q: stopped at %d, behind the end", text, s.pos)
		}
	})
}
