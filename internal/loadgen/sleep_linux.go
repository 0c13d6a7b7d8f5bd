package loadgen

import (
	"encoding/binary"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// PreciseSleep returns a function that sleeps for short times, and some tens of
// microseconds too long at most on a machine that has room. It waits for a timer of the
// kernel, as for a connection, and so keeps no thread of the scheduler. One goroutine at
// a time may call it. Where the kernel has no such timer, it is [time.Sleep].
func PreciseSleep() (sleep func(time.Duration), release func()) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return time.Sleep, func() {}
	}
	timer := os.NewFile(uintptr(fd), "timer")
	var count [8]byte
	sleep = func(d time.Duration) {
		if d <= 0 {
			return
		}
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
		if err := unix.TimerfdSettime(fd, 0, &spec, nil); err != nil {
			time.Sleep(d)
			return
		}
		if n, err := timer.Read(count[:]); err != nil || n != len(count) || binary.NativeEndian.Uint64(count[:]) == 0 {
			time.Sleep(d)
		}
	}
	return sleep, func() { _ = timer.Close() }
}
