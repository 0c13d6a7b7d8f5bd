package clientapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/tlstest"
	"github.com/agentd/agentd/mcpbridge/mcphttp"
)

// A logbook keeps log lines; it may be read while others write.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Whoever opens connections without an end keeps nobody at another address out, and is a line of
// the log. A loopback address is everybody's: there all places are there for all.
func TestOneAddressKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	for address, bounded := range map[string]bool{"0.0.0.0:0": true, "127.0.0.1:0": false} {
		log := &logbook{}
		s, err := Listen(t.Context(), address, nil, Settings{
			Tokens: []mcphttp.Token{{Client: "batch", Secret: strings.Repeat("0123456789abcdef", 4)}}, Hosts: []string{"agents.example.com"}, Certificate: tlstest.Certificate(t),
		}, slog.New(slog.NewTextHandler(log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(s.listener.Addr().String())
		var last net.Conn
		for range MaxFromOne + 1 {
			if last, err = net.Dial("tcp", "127.0.0.1:"+port); err != nil {
				t.Fatal(err)
			}
			defer last.Close()
		}
		if bounded {
			_ = last.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := last.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
				t.Errorf("%s: one connection too many: %v", address, err)
			}
			greet(t, outside(t)+":"+port)
		} else {
			greet(t, "127.0.0.1:"+port)
		}
		if told := strings.Count(log.String(), "too many are open\" from=127.0.0.1 times=1"); told != 1 == bounded {
			t.Errorf("%s: the log has\n%s", address, log)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_ = s.Shutdown(ended) // it cuts the connections off
	}
}

// greet opens one more connection, which is served.
func greet(t *testing.T, address string) {
	t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Errorf("%s: %v", address, err)
		return
	}
	_ = conn.Close()
}

// outside is an address of this machine that is no loopback address.
func outside(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			return ip.IP.String()
		}
	}
	t.Skip("this machine has no address that others reach")
	return ""
}
