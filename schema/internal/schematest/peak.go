package schematest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"testing"
)

// peakEnv is set in the process that measures.
const peakEnv = "AGENTD_MEASURES_PEAK"

// InOwnProcess reports whether the test runs in a process of its own, in which no other
// test takes memory. Otherwise it starts one for it, and waits: there is nothing left to
// do.
func InOwnProcess(t *testing.T) bool {
	t.Helper()
	if os.Getenv(peakEnv) != "" {
		return true
	}
	if err := forgetPeak(); err != nil {
		t.Skipf("SKIPPED: this system does not say how much memory a process takes at most: %v", err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), peakEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	} else {
		t.Logf("%s", out)
	}
	return false
}

// Peaks collects what the cases of one kind take, for a row of a table.
type Peaks struct {
	Kind  string
	cases int
	input int // of the case that took the most
	most  int64
	which string
}

// Measure does some work on input of so many bytes, in which nothing else may go on. The
// process may grow by fixed bytes and by so many for each of the input.
func (p *Peaks) Measure(t *testing.T, name string, input, fixed, each int, work func()) {
	t.Helper()
	debug.FreeOSMemory() // of the cases before
	if err := forgetPeak(); err != nil {
		t.Fatal(err)
	}
	before := status(t, "VmRSS:")
	work()
	grown := max(0, status(t, "VmHWM:")-before)
	if bound := int64(fixed + each*input); grown > bound {
		t.Errorf("%s: %s of input take up to %s; %s were to be enough", name, size(int64(input)), size(grown), size(bound))
	}
	if p.cases++; grown >= p.most {
		p.input, p.most, p.which = input, grown, name
	}
	if testing.Verbose() {
		t.Logf("%s: %s of input take up to %s", name, size(int64(input)), size(grown))
	}
}

// Row is the row of a table: the kind, the number of cases, and the one that took the most.
func (p *Peaks) Row() string {
	return fmt.Sprintf("| %s | %d | %s | %s, %s |", p.Kind, p.cases, size(p.most), p.which, size(int64(p.input)))
}

// size writes a number of bytes as people do.
func size(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return fmt.Sprintf("%d KB", n/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// forgetPeak makes the memory that the process takes now its peak: proc(5), clear_refs.
func forgetPeak() error { return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// status returns a size from the status of the process.
func status(t *testing.T, field string) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := bytes.Cut(text, []byte(field))
	fields := bytes.Fields(after)
	if len(fields) < 2 {
		t.Fatalf("no %s in /proc/self/status", field)
	}
	kilobytes, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}
