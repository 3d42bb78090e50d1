// Package carrier holds what travels beside each message of a stream, in the message's context: which record it was made
// of, in which batch, and what the decoder made of it. The engine's own metadata would lose the order and the repeats of
// Kafka headers, and a processor may drop any message of a batch, so every message carries the batch.
package carrier

import (
	"context"

	"appliance/internal/event"
	"appliance/internal/intake"
)

// Carrier is one message's place. Exactly one of Event and Fault is set once the decoder has seen the record.
type Carrier struct {
	Batch *intake.Batch
	Span  int // index into Batch.Spans
	Index int // index into Span.Records

	Event *event.Event // what the record says
	Fault *event.Fault // or why it says nothing: the reason of its dead letter
}

// Record returns the record that the message was made of.
func (c Carrier) Record() *event.Record { return &c.Batch.Spans[c.Span].Records[c.Index] }

type key struct{}

// With returns a context that carries c.
func With(ctx context.Context, c Carrier) context.Context {
	return context.WithValue(ctx, key{}, c)
}

// From returns what With put there.
func From(ctx context.Context) (Carrier, bool) {
	c, ok := ctx.Value(key{}).(Carrier)
	return c, ok
}
