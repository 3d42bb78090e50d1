// Package progress draws how far a command has come: one line on a terminal, redrawn in place, and nothing at all
// anywhere else, so that a log file or a pipe never holds half a picture.
package progress

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// redraw is the shortest time between two drawings: more often costs time and cannot be read.
const redraw = 100 * time.Millisecond

// Bar is one line of progress. Its methods are safe for concurrent use, and do nothing on a Bar without a terminal.
type Bar struct {
	out   io.Writer // nil without a terminal
	now   func() time.Time
	label string
	total int64

	mu      sync.Mutex
	began   time.Time
	drawn   time.Time
	done    int64
	visible int // width of what is drawn
}

// New begins a line for total units, 0 where nobody knows how many. Only where terminal is true is anything written to
// out, which is the one for people, never the one for data.
func New(out io.Writer, terminal bool, now func() time.Time, label string, total int64) *Bar {
	b := &Bar{now: now, label: label, total: total}
	if terminal {
		b.out, b.began = out, now()
	}
	return b
}

// Add counts n more units as done.
func (b *Bar) Add(n int64) {
	if b.out == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(b.done + n)
}

// Set says how many units are done in all.
func (b *Bar) Set(done int64) {
	if b.out == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(done)
}

func (b *Bar) set(done int64) {
	b.done = done
	now := b.now()
	if now.Sub(b.drawn) < redraw {
		return
	}
	b.drawn = now
	b.write(render(b.label, b.done, b.total, now.Sub(b.began)))
}

// Done wipes the line: what came of it is for the command to say.
func (b *Bar) Done() {
	if b.out == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.visible > 0 {
		b.write("")
	}
}

// write replaces what is drawn. The line is padded rather than erased by a control sequence, which not every terminal
// knows. A terminal that went away is no reason to end the work.
func (b *Bar) write(line string) {
	width := len([]rune(line))
	padding := strings.Repeat(" ", max(0, b.visible-width))
	fmt.Fprint(b.out, "\r"+line+padding+"\r"+line)
	b.visible = width
}

const cells = 24

// render draws a state: label, bar and share where the total is known, count, rate, and the time that is left.
func render(label string, done, total int64, elapsed time.Duration) string {
	rate := 0.0
	if elapsed > 0 {
		rate = float64(done) / elapsed.Seconds()
	}
	if total <= 0 {
		return fmt.Sprintf("%s  %s  %s/s", label, group(done), group(int64(rate)))
	}
	share := min(1, max(0, float64(done)/float64(total)))
	filled := int(share * cells)
	line := fmt.Sprintf("%s  [%s%s] %3d%%  %s/%s  %s/s", label, strings.Repeat("#", filled), strings.Repeat("·", cells-filled),
		int(share*100), group(done), group(total), group(int64(rate)))
	if done > 0 && done < total && rate > 0 {
		left := time.Duration(float64(total-done) / rate * float64(time.Second))
		line += "  " + left.Round(time.Second).String() + " left"
	}
	return line
}

// group writes a number with a comma every three digits.
func group(n int64) string {
	digits := strconv.FormatInt(max(0, n), 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
