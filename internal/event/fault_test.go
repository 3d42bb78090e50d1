package event_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"appliance/internal/event"
)

func TestTruncateKeepsWholeCharacters(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"short":                             {"abc", 5, "abc"},
		"exactly at the limit":              {"abcde", 5, "abcde"},
		"cut between characters":            {"aéé", 3, "aé"},
		"cut inside a character":            {"aéé", 4, "aé"},
		"cut inside a character of four":    {"😀😀", 7, "😀"},
		"no room for one character":         {"😀", 3, ""},
		"no room at all":                    {"abc", 0, ""},
		"less than no room":                 {"abc", -1, ""},
		"bytes that are not UTF-8":          {"a\xff\xfeb", 9, "a\uFFFDb"},
		"U+0000":                            {"a\x00b", 9, "a\uFFFDb"},
		"a replacement that would not fit":  {"ab\xff", 4, "ab"},
		"a character cut by the first trim": {strings.Repeat("é", 100), 3, "é"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := event.Truncate(c.text, c.limit); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func FuzzTruncate(f *testing.F) {
	f.Add("a\xff\x00é😀", 5)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		got := event.Truncate(text, limit)
		if len(got) > max(limit, 0) || !utf8.ValidString(got) || strings.Contains(got, "\x00") {
			t.Errorf("%q within %d is %q", text, limit, got)
		}
	})
}

func TestReasonsAreAClosedListOfDifferentNames(t *testing.T) {
	reasons := event.Reasons()
	if len(reasons) != 13 {
		t.Errorf("%d reasons, want 13", len(reasons))
	}
	slices.Sort(reasons)
	if len(slices.Compact(reasons)) != 13 {
		t.Error("a reason occurs twice")
	}
}
