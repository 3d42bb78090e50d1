package progress

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestRender(t *testing.T) {
	for _, c := range []struct {
		name        string
		done, total int64
		elapsed     time.Duration
		want        string
	}{
		{"nothing done has no rate and no time left", 0, 1000, 0, "load  [························]   0%  0/1,000  0/s"},
		{"half done takes as long again", 500, 1000, 10 * time.Second, "load  [############············]  50%  500/1,000  50/s  10s left"},
		{"all done has nothing left", 1000, 1000, 10 * time.Second, "load  [########################] 100%  1,000/1,000  100/s"},
		{"more than all is drawn as all", 1500, 1000, 10 * time.Second, "load  [########################] 100%  1,500/1,000  150/s"},
		{"an unknown total has no bar", 1234567, 0, time.Second, "load  1,234,567  1,234,567/s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := render("load", c.done, c.total, c.elapsed); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestBar(t *testing.T) {
	var at time.Time
	clock := func() time.Time { return at }
	t.Run("writes nothing without a terminal", func(t *testing.T) {
		var out bytes.Buffer
		b := New(&out, false, clock, "load", 10)
		b.Add(5)
		b.Set(10)
		b.Done()
		if out.Len() > 0 {
			t.Errorf("wrote %q", out.String())
		}
	})
	t.Run("is redrawn at most every 100 ms, and wiped at the end", func(t *testing.T) {
		var out bytes.Buffer
		at = time.Unix(1, 0)
		b := New(&out, true, clock, "load", 10)
		for range 5 {
			b.Add(1)
			at = at.Add(50 * time.Millisecond)
		}
		drawings := strings.Count(out.String(), "load") / 2
		if drawings != 3 {
			t.Errorf("drawn %d times in 200 ms, want 3: %q", drawings, out.String())
		}
		b.Done()
		lines := strings.Split(out.String(), "\r")
		if last := lines[len(lines)-1]; last != "" {
			t.Errorf("left %q behind", last)
		}
		if wiped := lines[len(lines)-2]; strings.TrimSpace(wiped) != "" || wiped == "" {
			t.Errorf("wiped with %q", wiped)
		}
	})
}
