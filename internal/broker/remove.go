package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Remove deletes topics and groups; those that don't exist are no error. A group that still has members is one.
func (a *Admin) Remove(ctx context.Context, topics, groups []string) error {
	var failed error
	if len(topics) > 0 {
		deleted, err := a.adm.DeleteTopics(ctx, topics...)
		failed = err
		for _, d := range deleted {
			if d.Err != nil && !errors.Is(d.Err, kerr.UnknownTopicOrPartition) {
				failed = errors.Join(failed, fmt.Errorf("delete topic %s: %w", d.Topic, d.Err))
			}
		}
	}
	if len(groups) > 0 {
		deleted, err := a.adm.DeleteGroups(ctx, groups...)
		failed = errors.Join(failed, err)
		for _, d := range deleted {
			if d.Err != nil && !errors.Is(d.Err, kerr.GroupIDNotFound) {
				failed = errors.Join(failed, fmt.Errorf("delete group %s: %w", d.Group, d.Err))
			}
		}
	}
	return failed
}

// Version returns the version of Kafka that the brokers' protocol is that of, such as "v4.0".
func (a *Admin) Version(ctx context.Context) (string, error) {
	brokers, err := a.adm.ApiVersions(ctx)
	if err != nil {
		return "", fmt.Errorf("ask for versions: %w", err)
	}
	for _, b := range brokers {
		if b.Err == nil {
			return b.VersionGuess(), nil
		}
		err = b.Err
	}
	return "", fmt.Errorf("ask for versions: %w", err)
}
