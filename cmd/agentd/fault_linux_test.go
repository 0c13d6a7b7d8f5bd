package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/sqlitetest"
	"github.com/agentd/agentd/rpc"
)

// A fault stops calls with its name in their error, in one line of the log, in
// readiness and in status; and when it is over so is all of that, without a restart
// and without a call.
func TestFaults(t *testing.T) {
	for name, fault := range map[string]struct {
		state func(t *testing.T) string // nil for any folder
		cause string                    // of the calls' errors
		begin func(t *testing.T, o *office) (end func() error)
	}{
		"a full disk": {tmpfs, "disk-full", func(t *testing.T, o *office) func() error {
			return fill(t, o.clerk.state)
		}},
		"a limit for files": {nil, "io", func(t *testing.T, o *office) func() error {
			return limitFiles(t, o)
		}},
		"a folder that is gone": {nil, "io", func(t *testing.T, o *office) func() error {
			if err := os.Rename(o.clerk.state, o.clerk.state+"-away"); err != nil {
				t.Fatal(err)
			}
			return func() error { return os.Rename(o.clerk.state+"-away", o.clerk.state) }
		}},
		"a lock of another program": {nil, "busy", func(t *testing.T, o *office) func() error {
			return sqlitetest.Lock(t, filepath.Join(o.clerk.state, "audit.db"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := ""
			if fault.state != nil {
				state = fault.state(t)
			}
			o := openOffice(t, state, nil)
			if r := o.call(t, ""); r.Status != rpc.StatusOK {
				t.Fatalf("before: %+v", r.Error)
			}
			end := fault.begin(t, o)
			var refused *rpc.Result
			eventually.Holds(t, "calls are refused", func() bool {
				start := time.Now()
				r := o.call(t, "")
				if took := time.Since(start); took > 10*time.Second {
					t.Errorf("a call took %s", took)
				}
				refused = r
				return r.Status != rpc.StatusOK
			})
			want := fmt.Sprintf(`{"cause":%q}`, fault.cause)
			if e := refused.Error; e.Code != rpc.CodeAuditFailed || !e.Retryable || e.DetectedBy != "agent://clerk" || string(e.Details) != want ||
				!strings.HasPrefix(e.Message, "no record of the call can be kept: ") || strings.Contains(e.Message, o.clerk.state) {
				t.Errorf("the call's error is %+v, details %s", e, e.Details)
			}
			// The call that finds the fault is refused a moment before readiness says so.
			eventually.Succeeds(t, "readiness says that calls are refused", func() error {
				if err := o.clerk.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "audit-log: calls are refused: ") {
					return fmt.Errorf("readiness: %v", err)
				}
				return nil
			})
			status := exec.Command("agentd", "fleet", "status", "-C", o.root)
			status.Env = o.clerk.env
			if out, _ := status.CombinedOutput(); !strings.Contains(string(out), "not-ready") || !strings.Contains(string(out), "calls are refused") {
				t.Errorf("status: %s", out)
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			eventually.Holds(t, "the clerk is ready again", func() bool { return o.clerk.Ready(t.Context()) == nil })
			if r := o.call(t, ""); r.Status != rpc.StatusOK {
				t.Errorf("after: %+v", r.Error)
			}
			o.wantOneLineEach(t, "audit-log", fault.cause)
			o.stop(t)
			verify := exec.Command("agentd", "audit", "verify", "-C", o.root, "--agent", "clerk")
			verify.Env = o.clerk.env
			if out, err := verify.CombinedOutput(); err != nil {
				t.Errorf("verify: %v, %s", err, out)
			}
		})
	}
}

// A store of answers that takes none refuses requests with a key, and no others.
func TestFaultsOfTheIdempotencyStore(t *testing.T) {
	for name, fault := range map[string]struct {
		state func(t *testing.T) string // nil for any folder
		cause string
		begin func(t *testing.T, o *office) (end func() error)
	}{
		"a full disk": {tmpfs, "disk-full", func(t *testing.T, o *office) func() error { return fill(t, o.clerk.state) }},
		"a lock of another program": {nil, "busy", func(t *testing.T, o *office) func() error {
			return sqlitetest.Lock(t, filepath.Join(o.clerk.state, "idempotency.db"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := ""
			if fault.state != nil {
				state = fault.state(t)
			}
			o := openOffice(t, state, []string{"auditDb: ./audit/clerk.db"})
			for _, key := range []string{"", "k-1"} {
				if r := o.call(t, key); r.Status != rpc.StatusOK {
					t.Fatalf("%+v", r.Error)
				}
			}
			end := fault.begin(t, o)
			var r *rpc.Result
			eventually.Holds(t, "requests with a key are refused", func() bool {
				r = o.call(t, fmt.Sprint("k-", time.Now().UnixNano())) // a repetition would write nothing
				return r.Status != rpc.StatusOK
			})
			if e := r.Error; e.Code != rpc.CodeInternal || !e.Retryable || string(e.Details) != fmt.Sprintf(`{"cause":%q}`, fault.cause) ||
				!strings.Contains(e.Message, "store of answers") || strings.Contains(e.Message, o.clerk.state) {
				t.Errorf("with a key: %+v, %s", e, e.Details)
			}
			eventually.Succeeds(t, "readiness names the store", func() error {
				if err := o.clerk.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "idempotency-store: ") {
					return fmt.Errorf("readiness: %v", err)
				}
				return nil
			})
			if r := o.call(t, ""); r.Status != rpc.StatusOK {
				t.Errorf("without a key: %+v", r.Error)
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			eventually.Holds(t, "the clerk is ready again", func() bool { return o.clerk.Ready(t.Context()) == nil })
			if r := o.call(t, "k-2"); r.Status != rpc.StatusOK {
				t.Errorf("afterwards: %+v", r.Error)
			}
			o.wantOneLineEach(t, "idempotency-store", fault.cause)
			o.stop(t)
		})
	}
}

// wantOneLineEach checks what the clerk has logged of its trouble.
func (o *office) wantOneLineEach(t *testing.T, condition, code string) {
	t.Helper()
	var begun, over int
	for _, r := range o.clerk.log.records(t) {
		if r["condition"] != condition {
			continue
		}
		switch {
		case r["level"] == "ERROR" && r["code"] == code && r["cause"] != "" && r["remedy"] != "":
			begun++
		case r["level"] == "INFO" && r["lasted"] != nil && strings.HasPrefix(fmt.Sprint(r["msg"]), "over: "):
			over++
		default:
			t.Errorf("logged %v", r)
		}
	}
	if begun != 1 || over != 1 {
		t.Errorf("%d lines that it began and %d that it ended:\n%s", begun, over, o.clerk.log)
	}
}

// tmpfs mounts a small file system, where the system allows it.
func tmpfs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("no file system can be mounted here, which takes CAP_SYS_ADMIN (%v); the other faults need none", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fill leaves no room on the file system of a folder.
func fill(t *testing.T, dir string) (end func() error) {
	t.Helper()
	name := filepath.Join(filepath.Dir(dir), "fill")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = file.Write(make([]byte, 512))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	_ = file.Close() // it is full
	return func() error { return os.Remove(name) }
}

// limitFiles lets no file of the clerk grow, as ulimit -f does.
func limitFiles(t *testing.T, o *office) (end func() error) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Prlimit(o.clerk.log.process.Pid, unix.RLIMIT_FSIZE, nil, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(o.clerk.log.process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 4096, Max: before.Max}, nil); err != nil {
		t.Fatal(err)
	}
	return func() error { return unix.Prlimit(o.clerk.log.process.Pid, unix.RLIMIT_FSIZE, &before, nil) }
}
