package app

import (
	"context"
	"fmt"
	"time"

	"appliance/internal/admin"
	"appliance/internal/policy"
	"appliance/internal/token"
	"appliance/policies"
)

func (a *App) newDoor(ctx context.Context) (*admin.Server, error) {
	auth := a.cfg.Admin.Auth
	modules, err := policy.Load(policies.Files())
	if err != nil {
		return nil, fmt.Errorf("load policies: %w", err)
	}
	engine, err := policy.New(ctx, a.log, modules, policy.Config{ReadScope: auth.ReadScope, WriteScope: auth.WriteScope})
	if err != nil {
		return nil, fmt.Errorf("compile policies: %w", err)
	}
	conf := admin.Config{
		Policy: engine, Metrics: a.meter.Handler(), Health: a.prober.Ready, Pipelines: pipelines{a},
		Consumer: a.ledgerPipeline(), Now: a.clock.Now, Log: a.log,
	}
	if auth.Enabled {
		keys, err := token.NewKeys(token.Settings{
			Algorithm: auth.Algorithm, Secret: auth.Secret, PublicKey: auth.PublicKey,
			Issuer: auth.Issuer, Audience: auth.Audience, Leeway: auth.Leeway,
		})
		if err != nil {
			return nil, fmt.Errorf("admin auth: %w", err)
		}
		conf.Verify = func(raw string, now time.Time) (token.Principal, error) { return token.Verify(raw, keys, now) }
	}
	return admin.New(conf)
}

// ledgerPipeline names the pipeline that GET /admin/consumer is about: the first that writes events.
func (a *App) ledgerPipeline() string {
	for _, p := range a.cfg.Pipelines {
		if a.groups[p.Name].ledger {
			return p.Name
		}
	}
	return ""
}

// pipelines shows the runners to the door.
type pipelines struct{ app *App }

var _ admin.Pipelines = pipelines{}

// List returns the pipelines in the order of the configuration.
func (p pipelines) List() []admin.Pipeline {
	var all []admin.Pipeline
	for _, r := range p.app.runners {
		all = append(all, r.describe(p.app.cfg.Secrets.Hide))
	}
	return all
}

// Offsets asks broker and database where a pipeline's group stands.
func (p pipelines) Offsets(ctx context.Context, name string) (admin.Offsets, error) {
	g, ok := p.app.groups[name]
	if !ok {
		return admin.Offsets{}, admin.ErrUnknownPipeline
	}
	return g.offsets(ctx, p.app.cfg.Secrets.Hide), nil
}

func (r *runner) describe(redact func(string) string) admin.Pipeline {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := admin.Pipeline{Name: r.name, State: r.state.String(), Since: r.since, Restarts: r.total}
	if r.cause != nil {
		out.LastCause = redact(r.cause.Error())
	}
	return out
}
