package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"appliance/internal/embedded/postmaster"

	"github.com/twmb/franz-go/pkg/kfake"
)

// kafkaBroker is a broker inside this process, which keeps its log on disk and
// flushes each batch before it acknowledges it.
type kafkaBroker struct {
	cluster *kfake.Cluster
	port    int
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

const (
	// retention is the broker's default for a topic that sets none.
	retention = 7 * 24 * time.Hour
	// retainEvery is how often expired records are removed. The broker's own
	// clock for that runs only while a topic sets its retention itself.
	retainEvery = 10 * time.Minute
)

func startKafka(ctx context.Context, f *folder, log *slog.Logger, out *lines) (*kafkaBroker, error) {
	port, err := choosePort(ctx, "Kafka", f.remembered().KafkaPort, out)
	if err != nil {
		return nil, err
	}
	if err := makeClosed(f.path("kafka")); err != nil {
		return nil, fmt.Errorf("start embedded kafka: %w", err)
	}
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.Ports(port), // always on 127.0.0.1
		kfake.ClusterID("appliance"),
		kfake.DataDir(f.path("kafka")),
		kfake.SyncWrites(),
		kfake.BrokerConfigs(map[string]string{
			"log.retention.ms": strconv.FormatInt(retention.Milliseconds(), 10),
		}),
		kfake.WithLogger(brokerLog{log}),
	)
	if err != nil {
		return nil, fmt.Errorf("start embedded kafka: %w", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it outlives the start
	k := &kafkaBroker{cluster: cluster, port: port, cancel: cancel}
	k.done.Go(func() { k.retain(ctx) })
	if err := f.remember(func(n *notes) { n.KafkaPort = port }); err != nil {
		k.close()
		return nil, err
	}
	return k, nil
}

// makeClosed makes a folder that only this user can enter; the broker itself
// would make it open.
func makeClosed(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// retain removes expired records now, for the time nobody ran, and then
// regularly.
func (k *kafkaBroker) retain(ctx context.Context) {
	tick := time.NewTicker(retainEvery)
	defer tick.Stop()
	for {
		k.cluster.ApplyRetention()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (k *kafkaBroker) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(k.port)) }

func (k *kafkaBroker) close() {
	// Before the cluster: a call into a closed one would wait for ever.
	k.cancel()
	k.done.Wait()
	k.cluster.Close()
}

// choosePort returns the remembered port if it is free, else another.
func choosePort(ctx context.Context, service string, remembered int, out *lines) (int, error) {
	if remembered != 0 && postmaster.PortFree(ctx, remembered) {
		return remembered, nil
	}
	port, err := postmaster.FreePort(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("choose a port for %s: %w", service, err)
	}
	if remembered != 0 {
		out.printf("%s: port %d is taken by another program, using %d from now on", service, remembered, port)
	}
	return port, nil
}

// brokerLog hands the broker's warnings and errors on; below that it speaks of
// every request.
type brokerLog struct{ log *slog.Logger }

// Logf implements kfake.Logger.
func (b brokerLog) Logf(level kfake.LogLevel, format string, args ...any) {
	at := slog.LevelDebug
	switch level {
	case kfake.LogLevelError:
		at = slog.LevelError
	case kfake.LogLevelWarn:
		at = slog.LevelWarn
	case kfake.LogLevelNone, kfake.LogLevelInfo, kfake.LogLevelDebug:
		if !b.log.Enabled(context.Background(), at) {
			return
		}
	}
	b.log.LogAttrs(context.Background(), at, "embedded kafka", slog.String("message", strings.TrimSpace(fmt.Sprintf(format, args...))))
}

// interface guard
var _ kfake.Logger = brokerLog{}
