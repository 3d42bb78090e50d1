package pipeline

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// hidden stands for a secret wherever one would be shown.
const hidden = "(secret)"

// secretMark marks a value that must not be shown. A value made of a marked one is marked too.
type secretMark struct{}

// Reference names a resource.
type Reference struct{ Kind, Name string }

// String gives the reference as it is written.
func (r Reference) String() string { return r.Kind + "." + r.Name }

// referenceMark marks the value of a resource as the resource itself, as opposed to a string that says the same.
type referenceMark struct{ Reference }

func isSecret(v cty.Value) bool { return v.HasMark(secretMark{}) }

// referenceOf returns the resource that the value is.
func referenceOf(v cty.Value) (Reference, bool) {
	for mark := range v.Marks() {
		if ref, ok := mark.(referenceMark); ok && v.Type().IsObjectType() {
			return ref.Reference, true
		}
	}
	return Reference{}, false
}

// plain takes all marks off, also those inside.
func plain(v cty.Value) cty.Value {
	u, _ := v.UnmarkDeep()
	return u
}

// Secrets knows the secrets of one configuration, so that texts of any origin can be cleared of them. The zero value
// knows none.
type Secrets struct{ forms []string }

// shortestBare is the length from which a secret is removed wherever it occurs; a shorter one would tear words apart,
// and is removed where it stands in quotes.
const shortestBare = 4

// learn adds a secret in the spellings in which error texts repeat values, and the password of a URL by itself.
func (s *Secrets) learn(secret string) {
	if secret == "" {
		return
	}
	s.add(secret)
	for line := range strings.Lines(secret) { // an excerpt shows single lines of a key
		if line = strings.TrimSpace(line); len(line) >= 16 {
			s.add(line)
		}
	}
	if u, err := url.Parse(strings.TrimPrefix(secret, "jdbc:")); err == nil && u.User != nil {
		if password, ok := u.User.Password(); ok {
			s.add(password)
		}
	}
}

func (s *Secrets) add(secret string) {
	quoted := strconv.Quote(secret)
	asJSON, _ := json.Marshal(secret) // a string always has a form
	if len(secret) < shortestBare {
		s.keep(quoted)
		return
	}
	for _, form := range []string{secret, strings.Trim(quoted, `"`), string(asJSON[1 : len(asJSON)-1]), url.QueryEscape(secret), url.PathEscape(secret)} {
		s.keep(form)
	}
}

// keep holds the longest form first, since one secret may be part of another.
func (s *Secrets) keep(form string) {
	if form == "" || slices.Contains(s.forms, form) {
		return
	}
	s.forms = append(s.forms, form)
	slices.SortStableFunc(s.forms, func(a, b string) int { return len(b) - len(a) })
}

// Hide returns text with every known secret replaced by "(secret)".
func (s *Secrets) Hide(text string) string {
	for _, form := range s.forms {
		text = strings.ReplaceAll(text, form, hidden)
	}
	return text
}
