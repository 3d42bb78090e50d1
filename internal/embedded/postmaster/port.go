package postmaster

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports that Linux never gives to outgoing connections (those start at 32768):
// one of them stays free for the server that comes back to it.
const (
	lowestPort  = 15000
	highestPort = 31999
)

// ErrNoPort says that no free port was found.
var ErrNoPort = errors.New("no free port on 127.0.0.1")

// FreePort returns a port that nothing listens on at 127.0.0.1. A nil random
// means the runtime's own source.
func FreePort(ctx context.Context, random func(n int) int) (int, error) {
	if random == nil {
		random = rand.IntN
	}
	for range 100 {
		port := lowestPort + random(highestPort-lowestPort+1)
		if PortFree(ctx, port) {
			return port, nil
		}
	}
	return 0, ErrNoPort
}

// PortFree reports whether a server could listen on the port at 127.0.0.1.
func PortFree(ctx context.Context, port int) bool {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
