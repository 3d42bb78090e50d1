package cloudevents

import (
	"context"
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/service"

	"appliance/internal/carrier"
	"appliance/internal/event"
)

// Deps is what the processor is given by the process it runs in: nothing, since it decides by the record alone.
type Deps struct{}

// Register adds the processor to the environment.
func Register(env *service.Environment, _ Deps) error {
	return env.RegisterBatchProcessor(Name, Spec(), func(conf *service.ParsedConfig, res *service.Resources) (service.BatchProcessor, error) {
		c, err := Parse(conf)
		if err != nil {
			return nil, err
		}
		return &processor{conf: c, log: res.Logger(), record: event.DecodeRecord, json: event.DecodeJSON}, nil
	})
}

type processor struct {
	conf   Config
	log    *service.Logger
	record func(*event.Record) (*event.Event, *event.Fault)
	json   func([]byte) (*event.Event, *event.Fault)
}

// Interface guard.
var _ service.BatchProcessor = (*processor)(nil)

// ProcessBatch decodes every message and returns all of them, in their order, as one batch. It never returns an error.
func (p *processor) ProcessBatch(_ context.Context, batch service.MessageBatch) ([]service.MessageBatch, error) {
	out := make(service.MessageBatch, len(batch))
	for i, m := range batch {
		out[i] = p.process(m.Context(), m) //nolint:contextcheck // the carrier travels in the message's own context
	}
	return []service.MessageBatch{out}, nil
}

// Close does nothing: there is nothing to release.
func (p *processor) Close(context.Context) error { return nil }

// process takes the message's own context, in which the carrier travels.
func (p *processor) process(ctx context.Context, m *service.Message) *service.Message {
	c, ok := carrier.From(ctx)
	if !ok || c.Batch == nil {
		p.processLoose(m)
		return m
	}
	// The record is decoded, not the message: its headers and its null value are not in the message's bytes.
	c.Event, c.Fault = p.decode(func() (*event.Event, *event.Fault) { return p.record(c.Record()) })
	m = m.WithContext(carrier.With(ctx, c))
	if c.Event != nil {
		m.SetBytes(c.Event.Raw)
	}
	p.annotate(m, c.Event, c.Fault)
	return m
}

// processLoose checks a message that no record stands behind, and marks it as failed where it is no event.
func (p *processor) processLoose(m *service.Message) {
	raw, err := m.AsBytes()
	if err != nil {
		m.SetError(fmt.Errorf("read message: %w", err))
		return
	}
	e, f := p.decode(func() (*event.Event, *event.Fault) { return p.json(raw) })
	if f != nil {
		m.SetError(fmt.Errorf("decode message: %w", f))
	}
	p.annotate(m, e, f)
}

// decode turns a panic of the decoder, which is a defect of it, into a dead letter of this one record: a panic in a
// processor would end the process, and the next one at the same record.
func (p *processor) decode(read func() (*event.Event, *event.Fault)) (e *event.Event, f *event.Fault) {
	defer func() {
		if cause := recover(); cause != nil {
			e, f = nil, event.NewFault(event.ReasonUnconvertible, "", fmt.Sprintf("the decoder panicked: %v", cause))
			p.log.Errorf("decode record: %s", f.Detail)
		}
	}()
	return read()
}

func (p *processor) annotate(m *service.Message, e *event.Event, f *event.Fault) {
	if !p.conf.Metadata {
		return
	}
	if f != nil {
		m.MetaSetMut("fault_reason", f.Reason)
		return
	}
	m.MetaSetMut("ce_id", e.ID)
	m.MetaSetMut("ce_source", e.Source)
	m.MetaSetMut("ce_type", e.Type)
	m.MetaSetMut("ce_time", e.Time)
	if e.Subject != "" {
		m.MetaSetMut("ce_subject", e.Subject)
	}
	if e.DataContentType != "" {
		m.MetaSetMut("ce_datacontenttype", e.DataContentType)
	}
}
