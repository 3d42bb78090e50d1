package generate

import (
	"time"

	"appliance/internal/event"
)

// spoil writes the event so that it can be no row, in one of five ways by turns, and names the reason that its dead
// letter should have. All of them keep the id in their bytes.
func (e *draft) spoil(which int) Line {
	ways := []struct {
		reason string
		raw    func() []byte
	}{
		{event.ReasonNoTime, func() []byte { return e.write(time.Time{}, e.kind.name, e.data) }},
		{event.ReasonMissingAttribute, func() []byte { return e.write(e.time, "", e.data) }},
		{event.ReasonUnstorableValue, func() []byte { return e.write(e.time, e.kind.name, []byte(`{"text":"a\u0000b"}`)) }},
		{event.ReasonOutsidePartitions, func() []byte { return e.write(e.time.AddDate(-40, 0, 0), e.kind.name, e.data) }},
		{event.ReasonMalformedStructured, func() []byte { raw := e.json(); return raw[:len(raw)-2] }},
	}
	way := ways[which%len(ways)]
	return Line{ID: e.id, Raw: way.raw(), Poison: way.reason}
}
