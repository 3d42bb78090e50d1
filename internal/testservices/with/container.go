package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/kafka"
	"github.com/testcontainers/testcontainers-go/modules/postgres"
)

// The images: a broker that speaks KRaft, and the middle of the PostgreSQL
// versions that the migrations are written for.
const (
	kafkaImage    = "confluentinc/confluent-local:7.8.0"
	postgresImage = "postgres:17"
)

// engine returns an error when no container engine answers. The library panics
// when it finds no address of one.
func engine(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("ask the container engine: %v", p)
		}
	}()
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return fmt.Errorf("ask the container engine: %w", err)
	}
	defer provider.Close()
	if err := provider.Health(ctx); err != nil {
		return fmt.Errorf("ask the container engine: %w", err)
	}
	return nil
}

func containerKafka(ctx context.Context, _ io.Writer) (running, error) {
	if err := engine(ctx); err != nil {
		return running{}, err
	}
	c, err := kafka.Run(ctx, kafkaImage)
	if err != nil {
		return running{}, fmt.Errorf("run %s: %w", kafkaImage, err)
	}
	brokers, err := c.Brokers(ctx)
	if err != nil {
		return running{}, fmt.Errorf("find %s: %w", kafkaImage, err)
	}
	return running{strings.Join(brokers, ","), "container of " + kafkaImage, terminate(c)}, nil
}

func containerPostgres(ctx context.Context, _ io.Writer) (running, error) {
	if err := engine(ctx); err != nil {
		return running{}, err
	}
	c, err := postgres.Run(ctx, postgresImage, postgres.BasicWaitStrategies())
	if err != nil {
		return running{}, fmt.Errorf("run %s: %w", postgresImage, err)
	}
	url, err := c.ConnectionString(ctx, "sslmode=disable")
	if err != nil {
		return running{}, fmt.Errorf("find %s: %w", postgresImage, err)
	}
	return running{url, "container of " + postgresImage, terminate(c)}, nil
}

func terminate(c testcontainers.Container) func(context.Context) error {
	return func(ctx context.Context) error { return c.Terminate(ctx) }
}
