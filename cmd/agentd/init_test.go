package main

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// What packages do before main is paid by every command and by each start of a program that
// the helper confines. No clock is asked: what a package allocates is the same every time.
func TestLittleHappensBeforeMain(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Args = []string{"agentd", "version"} // see TestMain
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace strings.Builder
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, trace.String())
	}
	const own, ownBytes = "github.com/agentd/agentd/", 16 << 10
	allBytes := 1400 << 10
	if raceEnabled { // client_golang alone allocates a megabyte then, and 64 KiB otherwise
		allBytes *= 2
	}
	var sum int
	for line := range strings.Lines(trace.String()) {
		pkg, bytes, ok := initialised(line)
		if !ok {
			continue
		}
		sum += bytes
		if strings.HasPrefix(pkg, own) && bytes > ownBytes {
			t.Errorf("%s allocates %d bytes before main, more than %d: do it when it is first needed", pkg, bytes, ownBytes)
		}
	}
	if sum == 0 || sum > allBytes {
		t.Errorf("all packages allocate %d bytes before main, more than %d (or none is listed): see which in\n%s", sum, allBytes, trace.String())
	}
}

// initialised reads a line of the runtime's, such as
// "init os @0.66 ms, 0.070 ms clock, 432 bytes, 6 allocs".
func initialised(line string) (pkg string, bytes int, ok bool) {
	f := strings.Fields(line)
	if len(f) != 11 || f[0] != "init" || f[8] != "bytes," {
		return "", 0, false
	}
	bytes, err := strconv.Atoi(f[7])
	return f[1], bytes, err == nil
}
