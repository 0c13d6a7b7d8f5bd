package sdnotify

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// systemd is the socket of a service manager.
func systemd(t *testing.T) (path string, next func() string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "sd") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path = filepath.Join(dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return path, func() string {
		conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		b := make([]byte, 4096)
		n, err := conn.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
}

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for _, p := range pairs {
			if value, ok := strings.CutPrefix(p, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

func TestNotify(t *testing.T) {
	path, next := systemd(t)
	n := New(environment("NOTIFY_SOCKET="+path), 17)
	for _, state := range []string{Ready, Reloading(1500 * time.Millisecond), Stopping} {
		if err := n.Notify(state); err != nil {
			t.Fatal(err)
		}
		if got := next(); got != state {
			t.Errorf("systemd heard %q, want %q", got, state)
		}
	}
	if got := Reloading(1500 * time.Millisecond); got != "RELOADING=1\nMONOTONIC_USEC=1500000" {
		t.Errorf("reloading is %q", got)
	}
	if err := New(environment(), 17).Notify(Ready); err != nil {
		t.Errorf("without systemd: %v", err)
	}
	if err := New(environment("NOTIFY_SOCKET=/nowhere/x"), 17).Notify(Ready); err == nil {
		t.Error("nobody hears, and that is no error")
	}
}

func TestWatchdog(t *testing.T) {
	path, next := systemd(t)
	n := New(environment("NOTIFY_SOCKET="+path, "WATCHDOG_USEC=2000", "WATCHDOG_PID=17"), 17)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { n.Watch(ctx, func() bool { return true }); close(done) }()
	for range 3 {
		if got := next(); got != "WATCHDOG=1" {
			t.Errorf("systemd heard %q", got)
		}
	}
	cancel()
	<-done
	for _, other := range []Notifier{
		New(environment("NOTIFY_SOCKET="+path), 17),
		New(environment("NOTIFY_SOCKET="+path, "WATCHDOG_USEC=2000", "WATCHDOG_PID=18"), 17),
		New(environment("NOTIFY_SOCKET="+path, "WATCHDOG_USEC=x"), 17),
	} {
		other.Watch(t.Context(), func() bool { t.Error("asked"); return false }) // returns at once
	}
}
