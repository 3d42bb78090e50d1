// Package plugins is the one list of the components that are ours.
package plugins

import (
	"errors"

	"github.com/redpanda-data/benthos/v4/public/service"

	"appliance/internal/pipeline"
	"appliance/plugins/cloudevents"
	"appliance/plugins/deadletter"
	"appliance/plugins/kafka"
	"appliance/plugins/ledger"
)

// Descriptions are what the language knows of each: its specification, and the check that its constructor begins with.
func Descriptions() []pipeline.Plugin {
	return []pipeline.Plugin{
		pipeline.Describe(pipeline.Input, kafka.Name, kafka.Spec(), kafka.Parse),
		pipeline.Describe(pipeline.Processor, cloudevents.Name, cloudevents.Spec(), cloudevents.Parse),
		pipeline.Describe(pipeline.Output, ledger.Name, ledger.Spec(), ledger.Parse),
		pipeline.Describe(pipeline.Output, deadletter.Name, deadletter.Spec(), deadletter.Parse),
	}
}

// Deps are what the components of one run are given by the process.
type Deps struct {
	Kafka       kafka.Deps
	CloudEvents cloudevents.Deps
	Ledger      ledger.Deps
	DeadLetter  deadletter.Deps
}

// Register adds all of them to the environment of one run.
func Register(env *service.Environment, d Deps) error {
	return errors.Join(
		kafka.Register(env, d.Kafka),
		cloudevents.Register(env, d.CloudEvents),
		ledger.Register(env, d.Ledger),
		deadletter.Register(env, d.DeadLetter),
	)
}
