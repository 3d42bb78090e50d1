package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// ErrUnknownPipeline is what a name that no pipeline has leads to.
var ErrUnknownPipeline = errors.New("unknown pipeline")

// Running is the state of a pipeline that moves records; every other counts as not ready.
const Running = "running"

// Pipelines is what the listener asks about the pipelines of this process. The application implements it.
type Pipelines interface {
	// List returns the pipelines in the order of the configuration. It reads fields and never waits.
	List() []Pipeline
	// Offsets asks broker and database where a pipeline's group stands. What could not be read is absent and named in
	// Problems; the error is ErrUnknownPipeline, or says that nothing at all is known.
	Offsets(ctx context.Context, pipeline string) (Offsets, error)
}

// Pipeline is one pipeline's state.
type Pipeline struct {
	Name      string    `json:"name"`
	State     string    `json:"state"`               // a word of supervisor.State
	Since     time.Time `json:"since,omitzero"`      // when it entered the state
	Restarts  int       `json:"restarts"`            // since the process began
	LastCause string    `json:"lastCause,omitempty"` // why the last run ended, redacted; "" when none has failed
}

// Offsets is where a consumer group stands, partition by partition.
type Offsets struct {
	Group      string
	Partitions []Partition
	Problems   []string // which of committed, stored and end could not be read, and why, redacted
}

// Partition is one partition's positions. nil means that there is none, or that it could not be read.
type Partition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Committed *int64 `json:"committed"` // Kafka's offset of the group
	Stored    *int64 `json:"stored"`    // the checkpoint in the database
	End       *int64 `json:"end"`       // the next offset that will be written
	Lag       *int64 `json:"lag"`       // end minus committed, never below 0; null where nothing was committed
}

// consumerBody is the body of GET /admin/consumer.
type consumerBody struct {
	Pipeline
	Group      string      `json:"group"`
	Partitions []Partition `json:"partitions"`
	Problems   []string    `json:"problems"`
}

// pipelines lists the pipelines.
func (s *Server) pipelines(w http.ResponseWriter, r *http.Request) error {
	return s.json(w, r, http.StatusOK, struct {
		Pipelines []Pipeline `json:"pipelines"`
	}{notNil(s.config.Pipelines.List())})
}

// consumer shows the pipeline that the configuration names. A broker that is away costs the offsets and not the state: that
// is the moment in which somebody looks.
func (s *Server) consumer(w http.ResponseWriter, r *http.Request) error {
	pipeline, err := find(s.config.Pipelines.List(), s.config.Consumer)
	if err != nil {
		return err
	}
	offsets, err := s.config.Pipelines.Offsets(r.Context(), pipeline.Name)
	if err != nil {
		return fmt.Errorf("read offsets: %w", err)
	}
	return s.json(w, r, http.StatusOK, consumerBody{
		Pipeline:   pipeline,
		Group:      offsets.Group,
		Partitions: notNil(offsets.Partitions),
		Problems:   notNil(offsets.Problems),
	})
}

func find(pipelines []Pipeline, name string) (Pipeline, error) {
	for _, p := range pipelines {
		if p.Name == name {
			return p, nil
		}
	}
	return Pipeline{}, ErrUnknownPipeline
}

// notNil makes an empty list of none: null would be a third thing to clients.
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
