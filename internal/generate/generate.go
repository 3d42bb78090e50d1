// Package generate makes events that look like those of real systems: device readings, orders, payments, page views. It is
// pure: the same options and number give the same bytes, so a test or a measurement can be repeated, and the events can be
// made again instead of being kept.
package generate

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Options say which events are made.
type Options struct {
	Seed   uint64
	Now    time.Time // the events end here and reach back from it
	Total  int       // how many there will be: they are spread over Total × 137 ms, at most 24 hours
	Types  []string  // names from Types; empty means all
	Poison float64   // share of lines that are no storable event, 0 to 1, in steps of a millionth
}

const (
	// pace is the distance between events: that of a busy, not an extreme, stream.
	pace = 137 * time.Millisecond
	// reach bounds how far back the events go. A store that keeps any month keeps the last day.
	reach = 24 * time.Hour
	// million is the resolution of Options.Poison.
	million = 1_000_000
)

// Generator makes the lines of one Options. It has no state: its methods may be called in any order, concurrently.
type Generator struct {
	seed   uint64
	prefix [8]byte // of each id
	now    time.Time
	step   time.Duration
	total  int
	kinds  []kind
	poison int // of a million
}

// Line is one event as a line of JSON, or something that is none.
type Line struct {
	ID     string // also in the bytes of a poisoned line
	Raw    []byte // without a line end, and none is in it
	Poison string // the reason that its dead letter should have; "" for a good event
}

// New checks the options. Its errors name the option.
func New(o Options) (*Generator, error) {
	if math.IsNaN(o.Poison) || o.Poison < 0 || o.Poison > 1 {
		return nil, fmt.Errorf("poison is a share from 0 to 1, not %v", o.Poison)
	}
	if o.Total < 0 {
		return nil, fmt.Errorf("the number of events is %d", o.Total)
	}
	kinds, err := choose(o.Types)
	if err != nil {
		return nil, err
	}
	g := &Generator{
		seed: o.Seed, now: o.Now.UTC(), step: pace, total: o.Total, kinds: kinds,
		poison: int(math.Round(o.Poison * million)),
	}
	if o.Total > 0 {
		g.step = min(pace, reach/time.Duration(o.Total))
	}
	binary.BigEndian.PutUint64(g.prefix[:], rand.NewPCG(o.Seed, 0x1d).Uint64())
	return g, nil
}

func choose(names []string) ([]kind, error) {
	all := catalogue()
	if len(names) == 0 {
		return all, nil
	}
	var chosen []kind
	for _, name := range names {
		i := slices.IndexFunc(all, func(k kind) bool { return k.name == name })
		if i < 0 {
			return nil, fmt.Errorf("type %q is none of %s", name, strings.Join(Types(), ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// Types returns the names of the types that can be made.
func Types() []string {
	var names []string
	for _, k := range catalogue() {
		names = append(names, k.name)
	}
	return names
}

// Line makes the nth line, from 0. Numbers at or beyond Total are allowed; their times stay at Now.
func (g *Generator) Line(n int) Line {
	r := rand.New(rand.NewPCG(g.seed, uint64(n)))
	e := draft{
		id:      g.id(n),
		time:    g.time(n, r),
		kind:    g.pick(r),
		subject: "",
	}
	e.kind.fill(&e, n, r)
	poisoned, which := g.poisoned(n)
	if !poisoned {
		return Line{ID: e.id, Raw: e.json()}
	}
	return e.spoil(which)
}

// pick chooses a type by its weight.
func (g *Generator) pick(r *rand.Rand) kind {
	weights := 0
	for _, k := range g.kinds {
		weights += k.weight
	}
	at := r.IntN(weights)
	for _, k := range g.kinds {
		if at -= k.weight; at < 0 {
			return k
		}
	}
	return g.kinds[0]
}

// id is a UUID of version 8 made of the seed and the number, so that no two lines of a seed share one.
func (g *Generator) id(n int) string {
	var u [16]byte
	copy(u[:8], g.prefix[:])
	binary.BigEndian.PutUint64(u[8:], uint64(n))
	u[6] = u[6]&0x0f | 0x80
	u[8] = u[8]&0x3f | 0x80
	var text [36]byte
	hex.Encode(text[:8], u[:4])
	hex.Encode(text[9:13], u[4:6])
	hex.Encode(text[14:18], u[6:8])
	hex.Encode(text[19:23], u[8:10])
	hex.Encode(text[24:], u[10:])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}

// time lies up to 5 s before the number's place in the stream, as clocks and networks have it, and never after now.
func (g *Generator) time(n int, r *rand.Rand) time.Time {
	back := time.Duration(max(0, g.total-1-n)) * g.step
	late := time.Duration(r.Int64N(int64(5 * time.Second)))
	return g.now.Add(-back - late).Truncate(time.Microsecond)
}

// poisoned tells whether the nth line is, and which kind it is by turns. Of the first n lines floor(n × share) are.
func (g *Generator) poisoned(n int) (bool, int) {
	before, after := n*g.poison/million, (n+1)*g.poison/million
	return after > before, before
}
