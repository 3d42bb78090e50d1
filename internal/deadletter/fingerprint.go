package deadletter

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
)

// Fingerprint names a kind of dead letter: 16 hex digits that are the same for letters of one reason whose details differ
// only in numbers, ids and quoted values. It is stored; another normalisation is another grouping of old and new letters.
func Fingerprint(reason, detail string) string {
	sum := sha256.Sum256([]byte(reason + "\x00" + normalise(detail)))
	return hex.EncodeToString(sum[:8])
}

// normalise keeps the words of a detail: a quoted value and a =(…) of PostgreSQL's key details become ?, a word with a
// digit in it #, space a single blank.
func normalise(detail string) string {
	var out []string
	rest := []rune(detail)
	for len(rest) > 0 {
		var piece string
		piece, rest = next(rest)
		if piece != "" && (len(out) == 0 || out[len(out)-1] != piece || piece != "?" && piece != "#") {
			out = append(out, piece)
		}
	}
	return strings.Join(out, " ")
}

// next takes one piece off rest, which is not empty: "" for space.
func next(rest []rune) (string, []rune) {
	switch first := rest[0]; {
	case unicode.IsSpace(first):
		return "", rest[1:]
	case closing(first) != 0:
		return "?", after(rest[1:], closing(first))
	case first == '=' && len(rest) > 1 && rest[1] == '(':
		return "?", after(rest[2:], ')')
	case !wordRune(first):
		return string(first), rest[1:]
	}
	n, digit := 0, false
	for n < len(rest) && (wordRune(rest[n]) || apostrophe(rest[n:])) {
		digit = digit || unicode.IsDigit(rest[n])
		n++
	}
	if digit {
		return "#", rest[n:]
	}
	return strings.ToLower(string(rest[:n])), rest[n:]
}

// closing returns the quote that ends what r begins, 0 where r is none. The apostrophe of a contraction never gets here.
func closing(r rune) rune {
	switch r {
	case '"', '\'', '`':
		return r
	case '«':
		return '»'
	case '“', '„':
		return '”'
	default:
		return 0
	}
}

// after returns what follows the next end; nothing where the detail was cut before it.
func after(rest []rune, end rune) []rune {
	for i, r := range rest {
		if r == end {
			return rest[i+1:]
		}
	}
	return nil
}

// apostrophe tells whether rest, in the middle of a word, goes on as in "can't".
func apostrophe(rest []rune) bool {
	return rest[0] == '\'' && len(rest) > 1 && unicode.IsLetter(rest[1])
}

// wordRune takes -, _ and . with letters and digits, as ids, topics and numbers are written.
func wordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.", r)
}
