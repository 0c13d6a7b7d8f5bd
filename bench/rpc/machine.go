package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A machine says where a run took place, and what else the machine did.
type machine struct {
	Time    time.Time `json:"time"`
	CPU     string    `json:"cpu"`
	Cores   int       `json:"cores"`
	Kernel  string    `json:"kernel"`
	Go      string    `json:"go"`
	Modules []string  `json:"modules"`
	// Took is how long the run took. Ours and Others are the shares of the processors that
	// the run and all other work have used; Others is negative where that is unknown.
	Took   time.Duration `json:"took"`
	Ours   float64       `json:"ours"`
	Others float64       `json:"others"`
}

// compared are the modules whose versions the page shows.
var compared = []string{
	"github.com/nats-io/nats.go", "github.com/nats-io/nats-server/v2", "google.golang.org/grpc", "connectrpc.com/connect",
	"github.com/modelcontextprotocol/go-sdk", "github.com/santhosh-tekuri/jsonschema/v6",
}

func thisMachine() machine {
	m := machine{Time: time.Now().UTC().Truncate(time.Second), Cores: runtime.NumCPU(), Go: runtime.Version(), CPU: runtime.GOARCH, Kernel: runtime.GOOS}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				m.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = "Linux " + strings.TrimSpace(string(text))
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if slices.Contains(compared, d.Path) {
				m.Modules = append(m.Modules, d.Path+" "+d.Version)
			}
		}
	}
	return m
}

// busy is the time that all processors of the machine were at work since it started, and
// false where that is unknown.
func busy() (time.Duration, bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, false
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	const user, idle, iowait, steal = 1, 4, 5, 8 // proc(5)
	var sum int64
	for i := user; i < len(fields) && i <= steal; i++ {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, false
		}
		if i != idle && i != iowait {
			sum += n
		}
	}
	return time.Duration(sum) * time.Second / 100, len(fields) > steal
}

// ours is the time that this process and those children have used that have ended.
func ours() time.Duration {
	var self, children syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &self)         // cannot fail
	_ = syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children) // cannot fail
	return time.Duration(self.Utime.Nano() + self.Stime.Nano() + children.Utime.Nano() + children.Stime.Nano())
}

// watch returns what completes m when the run has ended.
func (m *machine) watch() (done func()) {
	begun, before, mine := time.Now(), time.Duration(0), ours()
	before, known := busy()
	return func() {
		m.Took = time.Since(begun).Round(time.Second)
		all := time.Since(begun).Seconds() * float64(m.Cores)
		used := ours() - mine
		m.Ours, m.Others = used.Seconds()/all, -1
		if now, ok := busy(); ok && known {
			m.Others = max(0, (now-before-used).Seconds()/all)
		}
	}
}
