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
	"syscall"
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
	if err := makeClosed(f.path("kafka")); err != nil {
		return nil, fmt.Errorf("start embedded kafka: %w", err)
	}
	listener, port, err := listen(ctx, f.remembered().KafkaPort, out)
	if err != nil {
		return nil, err
	}
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.ListenFn(func(string, string) (net.Listener, error) { return listener, nil }),
		kfake.ClusterID("appliance"),
		kfake.DataDir(f.path("kafka")),
		kfake.SyncWrites(),
		kfake.BrokerConfigs(map[string]string{
			"log.retention.ms": strconv.FormatInt(retention.Milliseconds(), 10),
		}),
		kfake.WithLogger(brokerLog{log}),
	)
	if err != nil {
		listener.Close() // once more if the broker took it
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

// listen listens on the remembered port if it is free, else on another. The
// broker is given the open socket: one that was closed after a look stays bound
// for as long as a child that is being forked meanwhile holds its copy.
func listen(ctx context.Context, remembered int, out *lines) (net.Listener, int, error) {
	if remembered != 0 {
		if l, err := listenOn(ctx, remembered); err == nil {
			return l, remembered, nil
		}
	}
	for {
		port, err := postmaster.FreePort(ctx, nil)
		if err != nil {
			return nil, 0, fmt.Errorf("choose a port for Kafka: %w", err)
		}
		l, err := listenOn(ctx, port)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, 0, fmt.Errorf("start embedded kafka: %w", err)
		}
		if remembered != 0 {
			out.printf(moved, "Kafka", remembered, port)
		}
		return l, port, nil
	}
}

// listenOn listens on 127.0.0.1 only.
func listenOn(ctx context.Context, port int) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// moved is said when a remembered port could not be had.
const moved = "%s: port %d is taken by another program, using %d from now on"

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
