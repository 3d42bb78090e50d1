package deadletter_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"appliance/internal/deadletter"
	"appliance/internal/event"
)

func TestARequestIsBoundedOrRefused(t *testing.T) { // DL-10
	text := func(s string) *string { return &s }
	for name, tc := range map[string]struct {
		limit, refs *string
		reason      string
		says        string // "" where it is taken
	}{
		"one":                             {limit: text("1")},
		"as many as there may be":         {limit: text("200")},
		"a reason":                        {limit: text("20"), reason: event.ReasonNoTime},
		"one ref":                         {refs: text("a/0/1")},
		"two refs":                        {refs: text("a/0/1,b/0/2")},
		"neither limit nor refs":          {says: "say how many"},
		"a limit that is empty":           {limit: text(""), says: `limit ""`},
		"more than there may be":          {limit: text("201"), says: "not clamped"},
		"far more than there may be":      {limit: text("99999999999999999999"), says: "not a number"},
		"none":                            {limit: text("0"), says: `limit "0"`},
		"less than none":                  {limit: text("-1"), says: `limit "-1"`},
		"an exponent":                     {limit: text("1e2"), says: `limit "1e2"`},
		"a sign":                          {limit: text("+5"), says: `limit "+5"`},
		"a space before":                  {limit: text(" 5"), says: `limit " 5"`},
		"a space behind":                  {limit: text("5 "), says: `limit "5 "`},
		"a zero before":                   {limit: text("05"), says: `limit "05"`},
		"a digit of another script":       {limit: text("٣"), says: "limit"},
		"another base":                    {limit: text("0x10"), says: "limit"},
		"an underscore":                   {limit: text("1_0"), says: "limit"},
		"a fraction":                      {limit: text("5.0"), says: "limit"},
		"both":                            {limit: text("1"), refs: text("a/0/1"), says: "exclude each other"},
		"refs and a reason":               {refs: text("a/0/1"), reason: event.ReasonNoTime, says: "goes with a limit"},
		"a reason that there is not":      {limit: text("1"), reason: "unconvertable", says: "the reasons are unknown-mode"},
		"no ref":                          {refs: text(""), says: `parse ref ""`},
		"a ref that is none":              {refs: text("a/0/1,a/0"), says: `parse ref "a/0"`},
		"a ref with a space":              {refs: text("a/0/1, a/0/2"), says: `" a" is no topic`},
		"more refs than there may be":     {refs: text(strings.Join(refs(201), ",")), says: "more refs than the 200"},
		"as many refs as there may be":    {refs: text(strings.Join(refs(200), ","))},
		"many refs that are all the same": {refs: text(strings.Repeat("a/0/1,", 300) + "a/0/1")},
	} {
		t.Run(name, func(t *testing.T) {
			q, err := deadletter.NewRequest(tc.limit, tc.refs, tc.reason, 200)
			if tc.says == "" {
				if err != nil || q.Limit < 1 || q.Limit > 200 || q.Reason != tc.reason {
					t.Fatalf("%+v %v", q, err)
				}
				return
			}
			if !errors.Is(err, deadletter.ErrRequest) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %v, want one that says %s", err, tc.says)
			}
		})
	}
}

func refs(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = deadletter.Ref("a", 0, int64(i))
	}
	return out
}

func TestTheFetchIsWhatTheRequestNeeds(t *testing.T) {
	for _, tc := range []struct {
		name string
		q    deadletter.Request
		want int
	}{
		{"the newest few", deadletter.Request{Limit: 20}, 20},
		{"the newest few of a reason", deadletter.Request{Limit: 20, Reason: "no-time"}, 200},
		{"one by its name", deadletter.Request{Limit: 1, Refs: []string{"a/0/1"}}, 200},
	} {
		if got := tc.q.FetchLimit(200); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
	q := deadletter.Request{Limit: 20}
	for _, tc := range []struct {
		name    string
		page    deadletter.Page
		fetched int
		want    bool
	}{
		{"a complete answer", deadletter.Page{Newest: true}, 20, false},
		{"a short one", deadletter.Page{Truncated: true}, 20, true},
		{"a full one that may not be the newest", deadletter.Page{}, 20, true},
		{"one as wide as can be", deadletter.Page{Truncated: true}, 200, false},
		{"one that took too long", deadletter.Page{Truncated: true, TimedOut: true}, 20, false},
	} {
		if got := q.Widen(tc.page, tc.fetched, 200); got != tc.want {
			t.Errorf("widen %s: %v", tc.name, got)
		}
	}
}

func TestRefsKeepTheirOrder(t *testing.T) {
	s := "b/0/2,a/0/1,b/0/2"
	q, err := deadletter.NewRequest(nil, &s, "", 2)
	if err != nil || !slices.Equal(q.Refs, []string{"b/0/2", "a/0/1"}) || q.Limit != 2 {
		t.Errorf("%+v %v", q, err)
	}
}
