package natstest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// BinariesVariable names an environment variable with the paths of nats-server programs,
// separated as those in PATH. .ci/run builds one for each supported release.
const BinariesVariable = "AGENTD_NATS_SERVERS"

// EachVersion calls test with the URL of a fresh server: the embedded one, and then each
// program of [BinariesVariable], which differ in their version. conf is in nats-server's
// configuration language.
func EachVersion(t *testing.T, conf string, test func(t *testing.T, url string)) {
	t.Run("embedded", func(t *testing.T) { test(t, Run(t, conf).URL()) })
	programs := filepath.SplitList(os.Getenv(BinariesVariable))
	if len(programs) == 0 {
		t.Run("other versions", func(t *testing.T) {
			t.Skipf("SKIPPED: only the embedded nats-server is tested, since %s is not set; .ci/run sets it", BinariesVariable)
		})
	}
	for _, program := range programs {
		t.Run(filepath.Base(filepath.Dir(program)), func(t *testing.T) { test(t, runProgram(t, program, conf)) })
	}
}

// runProgram runs a nats-server program until the test ends, and returns its URL.
func runProgram(t *testing.T, program, conf string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	// The context of the test ends before its clean-up, in which agents stop that still need it.
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, //nolint:gosec // whoever runs the tests names the program
		"-c", path, "-a", "127.0.0.1", "-p", "-1", "-sd", filepath.Join(dir, "store"), "--ports_file_dir", dir)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }() // its status is that of a killed process
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("%s:\n%s", program, log.String())
		}
	})
	deadline := time.Now().Add(startLimit)
	for {
		select {
		case <-ended:
			t.Fatalf("%s ended:\n%s", program, log.String())
		default:
		}
		if url := announcedURL(dir); url != "" {
			return url
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s did not start", program)
		}
		time.Sleep(5 * time.Millisecond) // between two looks at another process
	}
}

// announcedURL is the URL in the file with which a server announces its ports, or "".
func announcedURL(dir string) string {
	files, _ := filepath.Glob(filepath.Join(dir, "*.ports"))
	for _, file := range files {
		var ports struct{ Nats []string }
		data, err := os.ReadFile(file)
		if err == nil && json.Unmarshal(data, &ports) == nil && len(ports.Nats) > 0 {
			return "nats://" + strings.TrimPrefix(ports.Nats[0], "nats://")
		}
	}
	return ""
}
