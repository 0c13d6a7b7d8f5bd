package sdnotify

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// The states of a service.
const (
	Ready    = "READY=1"
	Stopping = "STOPPING=1"
	watchdog = "WATCHDOG=1"
)

// A Notifier tells one systemd. The zero value tells nobody.
type Notifier struct {
	socket string
	every  time.Duration // between signs of life; 0 asks for none
}

// New reads NOTIFY_SOCKET and WATCHDOG_USEC. getpid is compared with WATCHDOG_PID,
// since children inherit the others' variables.
func New(getenv func(string) string, pid int) Notifier {
	n := Notifier{socket: getenv("NOTIFY_SOCKET")}
	if us, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 {
		if own := getenv("WATCHDOG_PID"); own == "" || own == strconv.Itoa(pid) {
			n.every = time.Duration(us) * time.Microsecond / 2 // as sd_watchdog_enabled(3) recommends
		}
	}
	return n
}

// Tell sends one state.
func (n Notifier) Tell(state string) error {
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

// Reloading is the state between a change of the files and the next [Ready]; it
// carries the monotonic clock, as Type=notify-reload wants it.
func Reloading(monotonic time.Duration) string {
	return fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", monotonic.Microseconds())
}

// Watch gives signs of life until ctx ends, as long as alive says so.
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
				_ = n.Tell(watchdog) // systemd restarts whom it does not hear
			}
		case <-ctx.Done():
			return
		}
	}
}
