package admin

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// dial opens a bare connection, for a client that doesn't behave.
func (b *bundle) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(b.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil { // the test's patience, far beyond the limits
		t.Fatal(err)
	}
	return conn
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

func TestAClientThatIsSlowWithItsHeaderIsCutAndOthersAreServed(t *testing.T) {
	b := setup(t, func(c *Config) { c.Limits.ReadHeader = 200 * time.Millisecond })
	slow := b.dial(t)
	send(t, slow, "GET /health/live HTTP/1.1\r\nHost: x\r\nX-Slow: ")
	b.get(t, "/health/live").is(t, 200, `{"status":"UP"}`)
	begun := time.Now()
	if _, err := io.ReadAll(slow); err != nil {
		t.Fatalf("not cut: %v", err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("cut after %s", took)
	}
}

func TestABodyThatComesTooSlowlyIsCut(t *testing.T) {
	b := setup(t, func(c *Config) { c.Limits.Read = 200 * time.Millisecond })
	slow := b.dial(t)
	send(t, slow, "POST /admin/consumer:pause HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nAuthorization: Bearer "+b.mint(t, "admin:write")+"\r\n\r\nx")
	res, err := http.ReadResponse(bufio.NewReader(slow), nil)
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		t.Fatal("neither cut nor answered")
	}
	if err != nil {
		return // cut without an answer
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode < 400 {
		t.Errorf("a body that never came was taken: %d", res.StatusCode)
	}
}

func TestABodyBeyondTheLimitIs413AlsoWithoutALength(t *testing.T) {
	b := setup(t, func(c *Config) { c.Limits.Body = 100 })
	for name, body := range map[string]io.Reader{
		"with its length":    strings.NewReader(strings.Repeat("x", 101)),
		"without its length": io.MultiReader(strings.NewReader(strings.Repeat("x", 101))),
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), "POST", b.base+"/admin/consumer:pause", body)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+b.mint(t, "admin:write"))
			res, err := b.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			text, _ := io.ReadAll(res.Body)
			answer{res, text}.problem(t, 413)
		})
	}
}

func TestAHeaderBeyondTheLimitIsRefused(t *testing.T) {
	b := setup(t, func(c *Config) { c.Limits.Header = 1 << 10 })
	if got := b.get(t, "/health/live", "X-Long", strings.Repeat("x", 8<<10)); got.StatusCode != 431 {
		t.Errorf("status %d", got.StatusCode)
	}
}

func TestShutdownAnswersWhatIsUnderWayAndTakesNothingNew(t *testing.T) {
	asked, goOn := make(chan struct{}), make(chan struct{})
	b := setup(t)
	b.state.offsets = func(context.Context, string) (Offsets, error) {
		close(asked)
		<-goOn
		return Offsets{Group: "g"}, nil
	}
	answered := make(chan answer, 1)
	go func() { answered <- b.get(t, "/admin/consumer", bearerOf(b.mint(t, "admin:read"))...) }()
	<-asked
	closed := make(chan error, 1)
	go func() { closed <- b.server.Shutdown(context.Background()) }()
	<-b.server.Ended() // the listener is closed
	if conn, err := net.Dial("tcp", strings.TrimPrefix(b.base, "http://")); err == nil {
		_ = conn.Close()
		t.Error("a new connection is taken during shutdown")
	}
	close(goOn)
	if got := <-answered; got.StatusCode != 200 {
		t.Errorf("the request under way got %d", got.StatusCode)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := b.server.Err(); err != nil {
		t.Errorf("Err after Shutdown: %v", err)
	}
}

func TestShutdownEndsWithItsContextWhenAHandlerHangs(t *testing.T) {
	asked, goOn := make(chan struct{}), make(chan struct{})
	b := setup(t)
	b.state.offsets = func(context.Context, string) (Offsets, error) {
		close(asked)
		<-goOn
		return Offsets{}, nil
	}
	failed := make(chan error, 1)
	req, err := http.NewRequestWithContext(t.Context(), "GET", b.base+"/admin/consumer", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.mint(t, "admin:read"))
	go func() {
		res, err := b.client.Do(req)
		if err == nil {
			_ = res.Body.Close()
		}
		failed <- err
	}()
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.server.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-failed; err == nil {
		t.Error("the connection was left open")
	}
	close(goOn)
}

func TestAListenerThatFailsIsTold(t *testing.T) {
	b := &bundle{log: &journal{}, state: &state{}}
	server, err := New(b.config(t))
	if err != nil {
		t.Fatal(err)
	}
	if server.Err() != nil {
		t.Error("an error before Start")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	server.Start(listener)
	<-server.Ended()
	if err := server.Err(); err == nil || !strings.Contains(err.Error(), "serve admin") {
		t.Errorf("Err: %v", err)
	}
}

func TestAServerWithoutWhatItShowsIsRefused(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("an empty configuration was taken")
	}
}
