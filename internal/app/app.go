// Package app is the composition root: it opens what the configuration names, runs the pipelines under their supervisors,
// serves the operators' door, and takes everything down in the order that loses nothing. Nobody else imports it but main.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"appliance/internal/admin"
	"appliance/internal/health"
	"appliance/internal/meter"
	"appliance/internal/pipeline"
	"appliance/internal/supervisor"
)

// Options are what a process gives its application beside the configuration.
type Options struct {
	Config *pipeline.Config
	Log    *slog.Logger
	Now    func() time.Time
	After  func(time.Duration) <-chan time.Time
	Random func() float64 // in [0, 1), spreads restarts
	Owner  string         // names this process in checkpoints and leases; unique among replicas
	// Ready is called once, when everything answers and every pipeline runs.
	Ready func(Addresses)
}

// Addresses are the base URLs and addresses of what this process serves and uses.
type Addresses struct {
	Admin    string `json:"admin,omitempty"`
	Kafka    string `json:"kafka,omitempty"`    // bootstrap servers
	Postgres string `json:"postgres,omitempty"` // a URL that psql takes; it holds the password
}

// App is one process's worth of pipelines.
type App struct {
	cfg   *pipeline.Config
	opts  Options
	log   *slog.Logger
	clock clock
	meter *meter.Meter

	res     *resources
	subs    *subscriptions
	prober  *health.Prober
	server  *admin.Server
	address string
	runners []*runner
	groups  map[string]groupOf // by pipeline name

	launched atomic.Bool // the runners' loops have begun

	upMu sync.Mutex
	up   map[string]bool // by dependency
}

// New opens nothing that connects: it checks what only the process can know, such as certificates and the port.
func New(ctx context.Context, o Options) (*App, error) {
	a := &App{
		cfg: o.Config, opts: o, log: o.Log, clock: clock{Now: o.Now, After: o.After, Random: o.Random}, groups: map[string]groupOf{}, up: map[string]bool{},
		meter: meter.New(meter.Identity{Service: o.Config.Telemetry.Service, Version: o.Config.Telemetry.Version, Instance: o.Config.Telemetry.Instance}),
	}
	res, err := openResources(ctx, o.Config, o.Log)
	if err != nil {
		return nil, err
	}
	a.res = res
	a.subs = newSubscriptions(res, a.clock, o.Log)
	for i := range o.Config.Pipelines {
		a.addPipeline(&o.Config.Pipelines[i])
	}
	a.prober = a.newProber()
	if err := a.openDoor(ctx); err != nil {
		res.close()
		return nil, err
	}
	return a, nil
}

// Run serves until ctx ends, then drains, and returns nil when nothing was left behind. Phases up: door, probes, schema,
// pipelines. Phases down, the reverse but for the door, which is closed last so that the drain can be watched.
func (a *App) Run(ctx context.Context) error {
	working, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	starting, stopStarting := context.WithCancel(ctx)
	defer stopStarting()
	var background sync.WaitGroup
	up := make(chan struct{})
	background.Go(func() {
		defer close(up)
		a.bringUp(starting, working, &background)
	})
	select {
	case <-ctx.Done():
	case <-a.doorEnded():
	}
	stopStarting()
	return a.bringDown(context.WithoutCancel(ctx), up, stopWork, &background)
}

// bringUp tries the schema once before the first probe, so that no probe asks for tables that are about to be made, and
// goes on trying after it.
func (a *App) bringUp(starting, working context.Context, background *sync.WaitGroup) {
	err := a.res.prepareOnce(starting, a.clock.Now())
	probing := make(chan struct{})
	background.Go(func() {
		defer close(probing)
		a.prober.Start(working)
	})
	if err != nil && a.res.prepare(starting, a.clock, a.log) != nil {
		return
	}
	select {
	case <-probing:
	case <-starting.Done():
		return
	}
	background.Go(func() { a.res.keepMonths(working, a.clock, a.log) })
	background.Go(func() { a.watchStalls(working) })
	for _, r := range a.runners {
		background.Go(func() { r.loop(working) })
		r.order(supervisor.Start)
	}
	a.launched.Store(true)
	a.announce(starting)
}

// announce calls Ready once the probes are green and every pipeline runs.
func (a *App) announce(ctx context.Context) {
	for _, r := range a.runners {
		if r.await(ctx, supervisor.Running) != nil {
			return
		}
	}
	for !a.prober.Ready().Up {
		select {
		case <-ctx.Done():
			return
		case <-a.clock.After(50 * time.Millisecond):
		}
	}
	if a.opts.Ready != nil {
		a.opts.Ready(a.addresses())
	}
}

func (a *App) addresses() Addresses {
	addr := Addresses{Admin: a.address}
	for _, k := range a.cfg.Kafka {
		addr.Kafka = strings.Join(k.Brokers, ",")
	}
	for _, conf := range a.res.configs {
		addr.Postgres = conf.PSQL()
	}
	return addr
}

// bringDown: not ready first, so that traffic goes elsewhere; then the pipelines, which commit; then what they used. All of
// it ends with the timeout, and the error names what had not ended by itself.
func (a *App) bringDown(ctx context.Context, up <-chan struct{}, stopWork func(), background *sync.WaitGroup) error {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Shutdown.Timeout)
	defer cancel()
	a.log.Info("shutting down", slog.Duration("within", a.cfg.Shutdown.Timeout))
	if a.server != nil {
		a.server.Unready()
	}
	a.delayDrain(ctx)
	left := within(ctx, "the start", func() { <-up }) // before the drain: what starts after it would not be drained
	left = errors.Join(left, a.drainAll(ctx), a.subs.closeAll(ctx))
	stopWork()
	left = errors.Join(left,
		within(ctx, "background work", background.Wait), within(ctx, "the probes", a.prober.Stop),
		within(ctx, "connections that are in use", a.res.close))
	if a.server != nil {
		left = errors.Join(left, a.server.Shutdown(ctx), a.server.Err())
	}
	if left != nil {
		a.log.Error("shut down with work left; it is not committed and will be read again", slog.Any("error", left))
		return left
	}
	a.log.Info("shut down, everything committed")
	return nil
}

// within waits for do, but not beyond ctx: what hangs is named and left to the end of the process.
func within(ctx context.Context, what string, do func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s did not end: %w", what, ctx.Err())
	}
}

func (a *App) delayDrain(ctx context.Context) {
	if a.cfg.Shutdown.DrainDelay <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-a.clock.After(a.cfg.Shutdown.DrainDelay):
	}
}

// drainAll stops every pipeline at once and waits; what does not end in time is named.
func (a *App) drainAll(ctx context.Context) error {
	if !a.launched.Load() {
		return nil
	}
	errs := make([]error, len(a.runners))
	var all sync.WaitGroup
	for i, r := range a.runners {
		all.Go(func() {
			if err := r.stop(ctx); err != nil {
				errs[i] = fmt.Errorf("pipeline %s: %w", r.name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (a *App) openDoor(ctx context.Context) error {
	if a.cfg.Admin == nil {
		return nil
	}
	server, err := a.newDoor(ctx)
	if err != nil {
		return err
	}
	where := net.JoinHostPort(a.cfg.Admin.Host, strconv.Itoa(a.cfg.Admin.Port))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", where)
	if err != nil {
		return fmt.Errorf("open admin listener: %w", err)
	}
	a.server, a.address = server, baseURL(listener.Addr())
	server.Start(listener)
	a.log.Info("admin listener is open", slog.String("url", a.address))
	return nil
}

// baseURL names the loopback address for a listener that is open on all.
func baseURL(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return "http://" + addr.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

func (a *App) doorEnded() <-chan struct{} {
	if a.server == nil {
		return nil
	}
	return a.server.Ended()
}
