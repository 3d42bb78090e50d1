// Package schema carries the JSON Schemas (draft 2020-12) of what goes over the wire, for readers that are not this
// program: an event, a dead letter, a part of a dead letter.
package schema

import "embed"

// Files holds the schemas by their names: event.schema.json, dead-letter.schema.json, dead-letter-part.schema.json.
//
//go:embed *.schema.json
var Files embed.FS
