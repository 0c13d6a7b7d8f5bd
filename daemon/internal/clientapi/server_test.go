package clientapi

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/logtest"
	"github.com/agentd/agentd/internal/tlstest"
	"github.com/agentd/agentd/mcpbridge/mcphttp"
)

// Whoever opens connections without an end keeps nobody at another address out, and is a line of
// the log.
func TestOneAddressKeepsNobodyOut(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("connections come from two addresses of this machine: on Linux it has all of 127.0.0.0/8")
	}
	t.Parallel()
	port, log := open(t, "0.0.0.0:0")
	last := fill(t, port)
	_ = last.SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := last.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("one connection too many: %d bytes, %v", n, err)
	}
	greet(t, "127.0.0.2", port)
	if n := log.Count(`too many are open" from=127.0.0.1 times=1`); n != 1 {
		t.Errorf("the log has\n%s", log)
	}
}

// A loopback address is everybody's: there all places are there for all.
func TestLoopbackIsEverybodys(t *testing.T) {
	t.Parallel()
	port, log := open(t, "127.0.0.1:0")
	fill(t, port)
	greet(t, "127.0.0.1", port)
	if log.Count("too many are open") != 0 {
		t.Errorf("the log has\n%s", log)
	}
}

// open listens until the test ends.
func open(t *testing.T, address string) (port string, log *logtest.Lines) {
	t.Helper()
	log = &logtest.Lines{}
	s, err := Listen(t.Context(), address, nil, Settings{
		Tokens: []mcphttp.Token{{Client: "batch", Secret: strings.Repeat("0123456789abcdef", 4)}}, Hosts: []string{"agents.example.com"}, Certificate: tlstest.Certificate(t),
	}, log.Logger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.Shutdown(ended) // it cuts the connections off
	})
	_, port, _ = net.SplitHostPort(s.listener.Addr().String())
	return port, log
}

// fill opens one connection more than one address may have, and returns the last one.
func fill(t *testing.T, port string) (last net.Conn) {
	t.Helper()
	for range MaxFromOne + 1 {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		last = conn
	}
	return last
}

// greet opens one more connection, from an address, which is served.
func greet(t *testing.T, from, port string) {
	t.Helper()
	d := tls.Dialer{
		NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: time.Minute},
		Config:    &tls.Config{InsecureSkipVerify: true},
	}
	conn, err := d.DialContext(t.Context(), "tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Errorf("from %s: %v", from, err)
		return
	}
	_ = conn.Close()
}
