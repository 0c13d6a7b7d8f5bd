package conformance_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/skill/sdk"
	"github.com/agentd/agentd/skill/worker/conformance"
)

// The test binary is also the workers in Go: CHECK_TEST says what is wrong with one.
func TestMain(m *testing.M) {
	if wrong := os.Getenv("CHECK_TEST"); wrong != "" {
		goWorker(wrong)
	}
	os.Exit(m.Run())
}

// goWorker serves the capabilities of the check with the kit. What it says is changed where
// something is to be wrong.
func goWorker(wrong string) {
	stdout := os.Stdout
	os.Stdout = os.Stderr
	read, write := io.Pipe()
	go func() { // ends with the process
		for lines := bufio.NewReader(read); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			_, _ = stdout.Write(spoil(wrong, line))
		}
	}()
	if wrong == "prints" {
		fmt.Fprintln(stdout, "Loading the model …")
	}
	code := sdk.RunWorker(context.Background(), os.Stdin, write, os.Stderr, skill, sdk.Concurrent(4))
	if wrong == "stays" {
		select {}
	}
	os.Exit(code)
}

// spoil makes something wrong with a line.
func spoil(wrong string, line []byte) []byte {
	is := func(text string) bool { return bytes.Contains(line, []byte(text)) }
	swap := func(old, to string) []byte { return bytes.ReplaceAll(line, []byte(old), []byte(to)) }
	switch {
	case wrong == "twice" && is(`"answer"`):
		return append(line, line...)
	case wrong == "rounds":
		return swap("9007199254740993", "9007199254740992")
	case wrong == "version":
		return swap(`"protocolVersion":1`, `"protocolVersion":1000000`)
	case wrong == "miscounts":
		return swap(`"answer":3`, `"answer":4`)
	case wrong == "silent" && is("-32601"):
		return nil
	case wrong == "tells":
		return swap("-32603", "-32000")
	case wrong == "breaks":
		return swap(`\n`, "\n")
	case wrong == "forgets":
		return swap(`"tenantId":"acme"`, `"tenantId":""`)
	case wrong == "agrees" && is("this worker speaks version"):
		return []byte(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}` + "\n")
	case wrong == "confuses" && is("requestAgent"):
		return swap(`"call":`, `"call":9`)
	}
	return line
}

// skill serves every capability of the check.
func skill(ctx context.Context, payload json.RawMessage) (any, error) {
	env := sdk.EnvironmentFrom(ctx)
	switch env.Capability {
	case "check-echo":
		return payload, nil
	case "check-context":
		return map[string]any{
			"caller": env.Caller, "callerProven": env.CallerProven, "correlationId": env.CorrelationID, "messageId": env.MessageID, "sessionId": env.SessionID,
			"tenantId": env.TenantID, "idempotencyKey": env.IdempotencyKey, "traceparent": env.Traceparent, "hops": env.Hops, "deadlineMs": env.Deadline.UnixMilli(),
		}, nil
	case "check-fail":
		var public sdk.PublicError
		err := json.Unmarshal(payload, &public)
		return nil, errors.Join(err, &public)
	case "check-bug":
		panic(string(payload))
	case "check-wait":
		if os.Getenv("CHECK_TEST") == "hangs" {
			select {}
		}
		<-ctx.Done()
		return nil, ctx.Err()
	case "check-progress":
		var values []json.RawMessage
		err := json.Unmarshal(payload, &values)
		for _, v := range values {
			if _, perr := sdk.Progress(ctx, v); perr != nil {
				err = perr
			}
		}
		return len(values), err
	case "check-nested":
		var r struct {
			To, Capability string
			Payload        json.RawMessage
			TimeoutMs      int64
		}
		if err := json.Unmarshal(payload, &r); err != nil {
			return nil, err
		}
		result, err := sdk.RequestAgent(ctx, sdk.Request{To: r.To, Capability: r.Capability, Payload: r.Payload, Timeout: time.Duration(r.TimeoutMs) * time.Millisecond})
		return result, err
	}
	return nil, sdk.Fail("what?")
}

// check runs the check, and returns what did not pass.
func check(t *testing.T, wrong string, cfg conformance.Config) (failed map[string]string, skipped int) {
	t.Helper()
	if wrong != "" {
		cfg.Command = []string{"env", "CHECK_TEST=" + wrong, "GORACE=atexit_sleep_ms=0", os.Args[0]}
	}
	failed = map[string]string{}
	passed, err := conformance.Run(t.Context(), cfg, func(c conformance.Check) {
		switch c.Outcome {
		case conformance.Failed:
			failed[c.Name] = c.Detail
		case conformance.Skipped:
			skipped++
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if passed != (len(failed) == 0) {
		t.Errorf("passed is %t with %v", passed, failed)
	}
	return failed, skipped
}

// Workers in three languages pass: by the kit in Go, and by hand in Python and bash from the
// page of the protocol.
func TestWorkersPass(t *testing.T) {
	for name, test := range map[string]struct {
		command []string
		skipped int
	}{
		"python": {[]string{"python3", "testdata/worker.py"}, 0}, "bash": {[]string{"bash", "testdata/worker.bash"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(test.command[0]); err != nil {
				t.Skip(err)
			}
			cfg := conformance.Config{Command: test.command, Timeout: time.Minute, Grace: 20 * time.Second}
			cfg.Capabilities = []conformance.Capability{{Name: "check-echo"}}
			cfg.Calls = []conformance.Call{{Capability: "check-echo", Payload: json.RawMessage(`7`), Judge: func(answer json.RawMessage) error {
				if string(answer) != "7" {
					return errors.New("it is not 7")
				}
				return nil
			}}}
			if failed, skipped := check(t, "", cfg); len(failed) > 0 || skipped != test.skipped {
				t.Errorf("%v failed, and %d were skipped", failed, skipped)
			}
		})
	}
}

// Workers of the kit for Python pass: with functions that block, one at a time and several at
// once, and with asynchronous ones.
func TestPythonKit(t *testing.T) {
	if err := exec.Command("python3", "-c", "import sys; sys.exit(sys.version_info < (3, 10))").Run(); err != nil {
		t.Skip("there is no Python 3.10: ", err)
	}
	const kit = "../../../sdk/python"
	for _, kind := range [][]string{{"sync", "1"}, {"sync", "4"}, {"async", "4"}} {
		t.Run(strings.Join(kind, "-"), func(t *testing.T) {
			t.Parallel()
			command := []string{"env", "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH=" + kit + "/src", "python3", kit + "/tests/check_worker.py"}
			cfg := conformance.Config{Command: append(command, kind...), Timeout: time.Minute, Grace: 20 * time.Second}
			if failed, skipped := check(t, "", cfg); len(failed) > 0 || skipped != 1 {
				t.Errorf("%v failed, and %d were skipped", failed, skipped)
			}
		})
	}
}

// What a worker does wrong is found, and the rest is checked all the same.
func TestFaultsAreFound(t *testing.T) {
	for wrong, want := range map[string]struct{ check, detail string }{
		"prints":    {"answers initialize", `no message`},
		"version":   {"answers initialize", "its protocolVersion is 1000000"},
		"miscounts": {"reports progress (check-progress)", "the answer is 4 and not 3"},
		"silent":    {"refuses methods that it does not know", "has said nothing"},
		"rounds":    {"echoes any JSON (check-echo)", "9007199254740993 comes back as 9007199254740992"},
		"twice":     {"echoes any JSON (check-echo)", "has answered request"},
		"breaks":    {"echoes any JSON (check-echo)", "no message"},
		"forgets":   {"knows its call (check-context)", `"tenantId":""`},
		"tells":     {"keeps other failures from the caller (check-bug)", "other than -32000"},
		"hangs":     {"ends cancelled calls (check-wait)", "has said nothing"},
		"confuses":  {"makes nested calls (check-nested)", "and must be"},
		"agrees":    {"refuses versions that it does not speak", "must answer with an error"},
		"stays":     {"ends with its input", "has not ended within"},
	} {
		t.Run(wrong, func(t *testing.T) {
			t.Parallel()
			cfg := conformance.Config{Timeout: 20 * time.Second, Grace: 20 * time.Second}
			switch wrong {
			case "silent":
				cfg.Timeout = time.Second
			case "hangs", "stays":
				cfg.Grace = time.Second
			}
			failed, _ := check(t, wrong, cfg)
			if !strings.Contains(failed[want.check], want.detail) || failed[want.check] == "" || strings.Contains(failed[want.check], "%!") {
				t.Errorf("not found in %v", failed)
			}
		})
	}
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		if failed, skipped := check(t, "nothing", conformance.Config{Timeout: time.Minute, Grace: 20 * time.Second}); len(failed) > 0 || skipped != 1 {
			t.Errorf("%v failed, and %d were skipped", failed, skipped)
		}
	})
}

// What a worker starts and leaves behind, with its output open, keeps the check from nothing. A
// worker that ends without an answer has refused a version as well.
func TestWorkerThatLeaves(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip(err)
	}
	const worker = `setsid sleep 60 2>/dev/null & exec 2>/dev/null; read -r line; exit 3`
	cfg := conformance.Config{Command: []string{"sh", "-c", worker}, StartTimeout: 300 * time.Millisecond, Grace: 20 * time.Second}
	began := time.Now()
	failed, _ := check(t, "", cfg)
	if took := time.Since(began); took > 50*time.Second {
		t.Errorf("the check took %s", took)
	}
	if failed["answers initialize"] == "" {
		t.Errorf("%v", failed)
	}
}

// A command that does not exist is an error, and no failed check.
func TestNoProgram(t *testing.T) {
	if _, err := conformance.Run(t.Context(), conformance.Config{Command: []string{"/no/such/program"}}, func(c conformance.Check) { t.Error(c) }); err == nil {
		t.Error("no error")
	}
}

// A worker in shell that answers nothing but initialize fails the rest.
func ExampleRun() {
	const worker = `read -r line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":2}}'; cat`
	_, err := conformance.Run(context.Background(), conformance.Config{Command: []string{"sh", "-c", worker}}, func(c conformance.Check) {
		if c.Name == "answers initialize" {
			fmt.Println(c.Outcome, c.Detail)
		}
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// failed its protocolVersion is 2, and it was offered 1 and one of the far future
}
