package health

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Dependency is something without which this process isn't ready.
type Dependency struct {
	Name     string
	Timeout  time.Duration
	Interval time.Duration // from the end of one probe to the start of the next; 0 means the prober's
	// Check returns nil when the dependency can be reached. It should honour ctx; one that doesn't is reported as down
	// after Timeout all the same, and is not asked again before it came back.
	Check func(ctx context.Context) error
}

// Config is what a Prober needs beside what it probes; every field is needed.
type Config struct {
	Interval time.Duration              // from the end of one probe to the start of the next
	Now      func() time.Time           // the clock
	Redact   func(string) string        // hides secrets in a cause; what Redactor does beside that is done anyway
	Changed  func(name string, up bool) // called with every probe's result, from the probe's own goroutine
	Log      *slog.Logger               // one line when a dependency comes or goes, or a reading is lost
}

// Prober asks every dependency and every reading again and again, each in a goroutine of its own: one that is slow doesn't
// delay another.
type Prober struct {
	config Config
	tasks  []*task
	states []atomic.Pointer[Status]
	cancel context.CancelFunc
	loops  sync.WaitGroup
}

// New returns a prober whose dependencies are all down, "not probed yet". It asks nothing before Start.
func New(config Config, dependencies []Dependency, readings []Reading) *Prober {
	hide, clean := config.Redact, Redactor()
	config.Redact = func(text string) string { return clean(hide(text)) } // bounded and on one line, whatever hides the secrets
	p := &Prober{config: config, states: make([]atomic.Pointer[Status], len(dependencies))}
	for i, d := range dependencies {
		p.states[i].Store(down(d.Name))
		p.tasks = append(p.tasks, p.dependency(&p.states[i], d))
	}
	for _, r := range readings {
		p.tasks = append(p.tasks, p.reading(r))
	}
	return p
}

// Start asks everything once and returns when each has answered or timed out, so that the first report is evidence and not
// an interval of false alarms; then it goes on in the background until Stop, or until ctx ends. Call it once.
func (p *Prober) Start(ctx context.Context) {
	ctx, p.cancel = context.WithCancel(ctx)
	var first sync.WaitGroup
	for _, t := range p.tasks {
		first.Add(1)
		p.loops.Go(func() { t.loop(ctx, cmp.Or(t.interval, p.config.Interval), first.Done) })
	}
	first.Wait()
}

// Stop ends the probing and returns when its goroutines have ended. What was found last stays readable.
func (p *Prober) Stop() {
	if p.cancel == nil {
		return
	}
	p.cancel()
	p.loops.Wait()
}

// Ready reports what the last probes found. It reads fields only and never waits.
func (p *Prober) Ready() Report {
	statuses := make([]Status, len(p.states))
	for i := range p.states {
		statuses[i] = *p.states[i].Load()
	}
	return report(statuses)
}

func (p *Prober) dependency(state *atomic.Pointer[Status], d Dependency) *task {
	settle := func(cause error) {
		found := &Status{Name: d.Name, Up: cause == nil, Detail: reachable, At: p.config.Now()}
		if cause != nil {
			found.Detail = p.config.Redact(cause.Error())
		}
		before := state.Swap(found)
		p.config.Changed(d.Name, found.Up)
		p.log(before, found)
	}
	return &task{
		timeout: d.Timeout, interval: d.Interval,
		ask:  func(ctx context.Context) (func(), error) { return func() { settle(nil) }, d.Check(ctx) },
		lost: settle,
	}
}

// log says what changed, once per change: a broker that is away for an hour is one line, not one per probe.
func (p *Prober) log(before, found *Status) {
	name, detail := slog.String("dependency", found.Name), slog.String("detail", found.Detail)
	switch {
	case found.Up && !before.Up:
		p.config.Log.Info("dependency is up", name)
	case !found.Up && (before.Up || before.At.IsZero()):
		p.config.Log.Warn("dependency is down", name, detail)
	}
}

func (p *Prober) reading(r Reading) *task {
	missing := false
	return &task{
		timeout: r.Timeout,
		ask: func(ctx context.Context) (func(), error) {
			deliver, err := r.read(ctx)
			return func() { missing = false; deliver() }, err
		},
		lost: func(cause error) {
			r.lost()
			if !missing {
				p.config.Log.Warn("reading did not arrive",
					slog.String("reading", r.Name), slog.String("detail", p.config.Redact(cause.Error())))
			}
			missing = true
		},
	}
}
