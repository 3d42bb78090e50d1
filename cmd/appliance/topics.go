package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"appliance/internal/broker"
	"appliance/internal/pipeline"
)

// brokerMaxMessage is what a broker takes as one message unless it is told otherwise.
const brokerMaxMessage = 1_048_588

// ensuredTopic is what `topics ensure` did for one topic.
type ensuredTopic struct {
	Topic      string `json:"topic"`
	Cluster    string `json:"cluster"`
	Created    bool   `json:"created"`
	Partitions int32  `json:"partitions"` // that it has
	Configured int32  `json:"configured"` // that the configuration names
}

func newTopicsCmd(e *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "topics", Short: "Topics that the configuration names",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTopicsEnsureCmd(e))
	return cmd
}

func newTopicsEnsureCmd(e *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ensure [DIR]", Short: "Create the topics that are missing",
		Long: "Creates each `topic` of the configuration that doesn't exist, and changes none that does: partitions that are\n" +
			"added move keys to other partitions and break their order, which is a person's decision. `run` creates none.",
		Args: optionalDirectory,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := loadServices(e, first(args))
			if err != nil {
				return err
			}
			done, err := ensureTopics(cmd.Context(), s)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(e.stdout, done)
			}
			for _, t := range done {
				if _, err := fmt.Fprintln(e.stdout, t.words()); err != nil {
					return err
				}
			}
			return nil
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func ensureTopics(ctx context.Context, s *services) ([]ensuredTopic, error) {
	done := []ensuredTopic{}
	for _, name := range slices.Sorted(maps.Keys(s.cfg.Kafka)) {
		topics := topicsOf(s.cfg, name)
		if len(topics) == 0 {
			continue
		}
		cluster, err := s.cluster(name)
		if err != nil {
			return nil, refused(err)
		}
		some, err := ensureOn(ctx, name, cluster, topics)
		if err != nil {
			return nil, err
		}
		done = append(done, some...)
	}
	return done, nil
}

func ensureOn(ctx context.Context, name string, cluster broker.Cluster, topics []broker.Topic) ([]ensuredTopic, error) {
	admin, err := openAdmin(ctx, cluster)
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	ensured, err := admin.Ensure(ctx, topics)
	if err != nil {
		return nil, err
	}
	done := make([]ensuredTopic, len(ensured))
	for i, t := range ensured {
		done[i] = ensuredTopic{Topic: t.Name, Cluster: name, Created: t.Created, Partitions: t.Partitions, Configured: topics[i].Partitions}
	}
	return done, nil
}

func (t ensuredTopic) words() string {
	switch {
	case t.Created:
		return fmt.Sprintf("created  %s (%d partitions)", t.Topic, t.Partitions)
	case t.Partitions != t.Configured:
		return fmt.Sprintf("exists   %s (%d partitions; the configuration says %d, and nothing was changed)", t.Topic, t.Partitions, t.Configured)
	default:
		return fmt.Sprintf("exists   %s (%d partitions)", t.Topic, t.Partitions)
	}
}

// topicsOf returns the topics that the configuration declares on a cluster, each with the settings that it decides. A
// topic of dead letters takes messages as large as its publisher makes them.
func topicsOf(cfg *pipeline.Config, cluster string) []broker.Topic {
	var topics []broker.Topic
	for _, t := range cfg.Topics {
		if t.Cluster != cluster {
			continue
		}
		configs := map[string]string{
			"cleanup.policy": t.CleanupPolicy,
			"retention.ms":   strconv.FormatInt(t.Retention.Milliseconds(), 10),
		}
		for _, d := range cfg.DeadLetters {
			if d.Cluster == cluster && d.Topic == t.Name {
				configs["max.message.bytes"] = strconv.Itoa(max(brokerMaxMessage, d.MaxMessageBytes))
			}
		}
		topics = append(topics, broker.Topic{
			Name: t.Name, Partitions: int32(t.Partitions), Replication: int16(t.Replication), Configs: configs,
		})
	}
	return topics
}
