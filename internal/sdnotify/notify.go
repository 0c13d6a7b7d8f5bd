package sdnotify

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// The states of a service; see also [Reloading].
const (
	Ready    = "READY=1"
	Stopping = "STOPPING=1"
	watchdog = "WATCHDOG=1"
)

// A Notifier sends states to one systemd. The zero value sends nothing.
type Notifier struct {
	socket string
	every  time.Duration // between watchdog notifications; 0 for a unit without WatchdogSec
}

// New reads NOTIFY_SOCKET and WATCHDOG_USEC. It ignores WATCHDOG_USEC when
// WATCHDOG_PID is not pid: children of the service inherit the variables, and a
// child that feeds the watchdog would hide that the service hangs.
func New(getenv func(string) string, pid int) Notifier {
	n := Notifier{socket: getenv("NOTIFY_SOCKET")}
	if us, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 {
		if own := getenv("WATCHDOG_PID"); own == "" || own == strconv.Itoa(pid) {
			n.every = time.Duration(us) * time.Microsecond / 2 // as sd_watchdog_enabled(3) recommends
		}
	}
	return n
}

// Notify sends one state. It does not wait for systemd to act on it.
func (n Notifier) Notify(state string) error {
	if n.socket == "" {
		return nil
	}
	name := n.socket
	if rest, abstract := strings.CutPrefix(name, "@"); abstract {
		name = "\x00" + rest
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("sdnotify: %w", err)
	}
	_, err = conn.Write([]byte(state))
	if cerr := conn.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("sdnotify: %w", err)
	}
	return nil
}

// Reloading returns the state from the begin of a reload to the next [Ready].
// Type=notify-reload requires the time on the monotonic clock in it, by which
// systemd tells this reload from an earlier one.
func Reloading(monotonic time.Duration) string {
	return fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", monotonic.Microseconds())
}

// Watch feeds systemd's watchdog until ctx ends, at each interval at which alive
// returns true. When the notifications stop, systemd restarts the service.
func (n Notifier) Watch(ctx context.Context, alive func() bool) {
	if n.socket == "" || n.every == 0 {
		return
	}
	ticker := time.NewTicker(n.every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if alive() {
				_ = n.Notify(watchdog) // a failure has the effect of not being alive
			}
		case <-ctx.Done():
			return
		}
	}
}
