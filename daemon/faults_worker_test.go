package daemon_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/agentd/agentd/skill/sdk"
)

// A faultyCall is what the callers of TestMixedFaults send: a number, and what the worker is to
// do with the call.
type faultyCall struct {
	ID int    `json:"id"`
	Do string `json:"do"`
}

// The workers of TestMixedFaults write down each call as it begins, and then do what it says. The
// first of their arguments is the folder for that.
const pythonFaulty = `
import json, os, signal, sys, time
notes = sys.argv[1]
if os.path.exists(os.path.join(notes, "refuse")):
    sys.exit(3)
out, sys.stdout = sys.stdout, sys.stderr
pids = os.open(os.path.join(notes, "pids"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
os.write(pids, b"%d\n" % os.getpid())
ran = os.open(os.path.join(notes, "ran"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
kept = []

def send(**message):
    out.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    out.flush()

for line in sys.stdin:
    m = json.loads(line)
    id, method = m.get("id"), m.get("method")
    if method == "initialize":
        send(id=id, result={"protocolVersion": 1, "concurrency": 4})
    elif method == "ping":
        send(id=id, result={})
    elif method == "invoke":
        call = m["params"]["payload"]
        os.write(ran, b"%d\n" % call["id"])
        do = call["do"]
        if do == "slow":
            time.sleep(0.02)
        elif do == "crash":
            os._exit(9)
        elif do == "hang":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif do == "garbage":
            out.write("this is no message\n")
            out.flush()
        elif do == "flood":
            out.write("x" * (8 << 20) + "\n")
            out.flush()
        elif do == "log":
            print("y" * (1 << 20), file=sys.stderr)
        elif do == "grow":
            kept.append(bytearray(os.urandom(1) * (128 << 20)))
        if do == "fail":
            send(id=id, error={"code": -32000, "message": "it was asked to fail"})
        else:
            send(id=id, result={"answer": {"id": call["id"], "fill": "z" * (500 << 10) if do == "long" else ""}})
`

// goFaulty is the same in Go.
func goFaulty() {
	notes := os.Args[1]
	if _, err := os.Stat(filepath.Join(notes, "refuse")); err == nil {
		os.Exit(3)
	}
	note := func(name string, number int) {
		f, err := os.OpenFile(filepath.Join(notes, name), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			panic(err)
		}
		defer f.Close()
		fmt.Fprintln(f, number)
	}
	note("pids", os.Getpid())
	sdk.Main(func(ctx context.Context, c faultyCall) (map[string]any, error) {
		note("ran", c.ID)
		fill := ""
		switch c.Do {
		case "slow":
			time.Sleep(20 * time.Millisecond)
		case "crash":
			os.Exit(9)
		case "hang":
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		case "garbage":
			_, _ = syscall.Write(syscall.Stdout, []byte("this is no message\n"))
		case "flood":
			_, _ = syscall.Write(syscall.Stdout, []byte(strings.Repeat("x", 8<<20)+"\n"))
		case "log":
			fmt.Fprintln(os.Stderr, strings.Repeat("y", 1<<20))
		case "grow":
			grown := make([]byte, 128<<20)
			for i := 0; i < len(grown); i += 4096 {
				grown[i] = 1
			}
			time.Sleep(1500 * time.Millisecond) // until agentd has looked
			grown[0] = 2
		case "fail":
			return nil, sdk.Fail("it was asked to fail")
		case "long":
			fill = strings.Repeat("z", 500<<10)
		}
		return map[string]any{"id": c.ID, "fill": fill}, ctx.Err()
	}, sdk.Concurrent(4))
}
