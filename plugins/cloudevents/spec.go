// Package cloudevents is the engine's processor `cloudevents_decode`: it says of every Kafka record which CloudEvent it
// is, or why it is none, and lets neither stop the others.
package cloudevents

import "github.com/redpanda-data/benthos/v4/public/service"

// Name is the component's name in HCL, in documentation and in metrics.
const Name = "cloudevents_decode"

const fieldMetadata = "metadata"

// Config is what the arguments say.
type Config struct {
	Metadata bool // set ce_… metadata on each message
}

// Spec documents the component.
func Spec() *service.ConfigSpec {
	return service.NewConfigSpec().
		Summary("Decodes each Kafka record as a CloudEvent 1.0, in binary or structured mode.").
		Description("A message becomes the whole event as one JSON object. The text of a structured event, and a JSON "+
			"payload of a binary one, are kept byte for byte; another payload is `data` as a string where it is text, and "+
			"`data_base64` where it isn't.\n\n"+
			"The processor never fails. A record that is no event, or one that PostgreSQL could not hold, goes on "+
			"unchanged, with the reason of its dead letter beside it; the output publishes that dead letter.\n\n"+
			"It refuses: an unknown content mode; a missing, repeated or badly named attribute; a value that breaks its "+
			"attribute's type; an attribute beyond 1,024 bytes, source and id beyond 2,000 together; an event without "+
			"time; JSON that isn't, or that jsonb refuses: U+0000, half a surrogate pair, bytes that are not UTF-8, more "+
			"than 512 levels, numbers beyond numeric.\n\n"+
			"Messages that no `kafka` input made, of `generate` or `stdin` for example, are read as structured events; "+
			"one that isn't is marked as failed.").
		Fields(
			service.NewBoolField(fieldMetadata).Default(false).
				Description("Set `ce_id`, `ce_source`, `ce_type`, `ce_time` and, where the event has them, `ce_subject` and "+
					"`ce_datacontenttype` as metadata, and `fault_reason` on a record that is no event. Routing by "+
					"`meta(\"ce_type\")` then saves what `this.type` costs, which parses the whole event (2 µs for a small "+
					"one). Off by default, since it costs every message 0.3 µs and 400 bytes."),
		).
		Example("Keep one family of events", "Routes by type without parsing the event.", `
pipeline:
  processors:
    - cloudevents_decode:
        metadata: true
    - mapping: |
        root = if meta("ce_type").or("").has_prefix("com.example.test.") { deleted() }
`)
}

// Parse reads the arguments.
func Parse(conf *service.ParsedConfig) (Config, error) {
	metadata, err := conf.FieldBool(fieldMetadata)
	return Config{Metadata: metadata}, err
}
