package worker_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentd/agentd/skill/sandbox"
)

// The test binary is also the workers that the tests run: WORKER_TEST names one.
func TestMain(m *testing.M) {
	if sandbox.IsHelper(os.Args) {
		os.Exit(sandbox.Main(os.Args))
	}
	switch kind := os.Getenv("WORKER_TEST"); kind {
	case "":
		os.Exit(m.Run())
	case "pipe-echo":
		pipeEcho()
	case "sdk-echo":
		sdkEcho()
	default:
		(&rogue{kind: kind, calls: map[string]chan struct{}{}}).run()
	}
}

// A rogue is a worker that is written by hand: it keeps to the protocol, and breaks it where
// a capability says so.
type rogue struct {
	kind    string
	mu      sync.Mutex
	calls   map[string]chan struct{} // closed when the call is cancelled
	answers sync.Map                 // what requests of its own are answered with, by id
	ids     []int                    // of agentd's requests
	pings   []int                    // those of them that were pings
}

type line struct {
	ID     json.RawMessage
	Method string
	Params struct {
		ID         json.RawMessage
		Capability string
		Payload    json.RawMessage
		Token      string
	}
	Result json.RawMessage
	Error  json.RawMessage
}

func (w *rogue) write(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Printf(format+"\n", args...)
}

func (w *rogue) answer(id json.RawMessage, answer any) {
	text, _ := json.Marshal(answer)
	w.write(`{"jsonrpc":"2.0","id":%s,"result":{"answer":%s}}`, id, text)
}

func (w *rogue) run() {
	if w.kind == "dies" {
		fmt.Fprintln(os.Stderr, "no module named model")
		os.Exit(3)
	}
	if first := os.Getenv("WORKER_FIRST"); first != "" && os.Mkdir(first, 0o700) == nil {
		w.kind = os.Getenv("WORKER_FIRST_KIND")
	}
	in := bufio.NewReaderSize(os.Stdin, 16) // what it has not got to is still in the pipe
	for {
		text, err := in.ReadBytes('\n')
		if err != nil {
			if w.kind == "stays" {
				select {}
			}
			os.Exit(0)
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			panic(err)
		}
		w.note(l)
		switch {
		case l.Method == "initialize":
			w.initialize(l.ID)
		case l.Method == "ping":
			w.write(`{"jsonrpc":"2.0","id":%s,"result":null}`, l.ID)
		case l.Method == "invoke" && l.Params.Capability == "asks": // and does not read the answers
			many := strings.Repeat(`{"jsonrpc":"2.0","id":"`+strings.Repeat("x", 120)+`","method":"`+strings.Repeat("\ue000", 64)+`"}`+"\n", 4096)
			for {
				if _, err := os.Stdout.WriteString(many); err != nil {
					os.Exit(1)
				}
			}
		case l.Method == "invoke":
			go w.invoke(l)
		case l.Method == "cancel":
			w.mu.Lock()
			if c := w.calls[string(l.Params.ID)]; c != nil {
				close(c)
			}
			w.mu.Unlock()
		case l.Method == "" && string(l.ID) != "":
			if got, ok := w.answers.Load(string(l.ID)); ok {
				got.(chan line) <- l
			}
		}
	}
}

// note notes the id of a request.
func (w *rogue) note(l line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id, err := strconv.Atoi(string(l.ID))
	if err != nil || l.Method == "" {
		return
	}
	w.ids = append(w.ids, id)
	if l.Method == "ping" {
		w.pings = append(w.pings, id)
	}
}

func (w *rogue) initialize(id json.RawMessage) {
	result := `{"protocolVersion":1,"concurrency":8}`
	switch w.kind {
	case "mute":
		return
	case "future":
		result = `{"protocolVersion":2}`
	case "partial":
		result = `{"protocolVersion":1,"capabilities":["echo"]}`
	case "serial":
		result = `{"protocolVersion":1}`
	case "leaves", "leaves-feed": // it ends when there is something to read: without reading, or but for the line feed
		w.write(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1}}`, id)
		for {
			n := pending(os.Stdin)
			if n > 0 && w.kind == "leaves-feed" {
				_, _ = io.ReadFull(os.Stdin, make([]byte, n-1))
			}
			if n > 0 {
				os.Exit(4)
			}
			time.Sleep(time.Millisecond)
		}
	}
	w.write(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// request asks agentd for something, and returns the response.
func (w *rogue) request(id, method, params string) line {
	got := make(chan line, 1)
	w.answers.Store(id, got)
	w.write(`{"jsonrpc":"2.0","id":%s,"method":"%s","params":%s}`, id, method, params)
	return <-got
}

func (w *rogue) invoke(l line) {
	cancelled := make(chan struct{})
	w.mu.Lock()
	w.calls[string(l.ID)] = cancelled
	w.mu.Unlock()
	switch l.Params.Capability {
	case "echo":
		w.answer(l.ID, l.Params.Payload)
	case "pid":
		w.answer(l.ID, os.Getpid())
	case "ids":
		w.mu.Lock()
		all := map[string][]int{"ids": w.ids, "pings": w.pings}
		w.mu.Unlock()
		w.answer(l.ID, all)
	case "params":
		w.answer(l.ID, map[string]any{"token": l.Params.Token, "home": os.Getenv("HOME"), "worker": os.Getenv("AGENTD_WORKER"), "secret": os.Getenv("WORKER_SECRET")})
	case "crash":
		fmt.Fprintln(os.Stderr, "db password is hunter2")
		os.Exit(7)
	case "killed":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "note": // that the call has run
		name, note, _ := strings.Cut(text(l.Params.Payload), " ")
		if f, err := os.OpenFile(filepath.Clean(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			fmt.Fprintln(f, note)
			_ = f.Close()
		}
		w.answer(l.ID, note)
	case "wait": // until it is cancelled
		touch(l.Params.Payload)
		<-cancelled
		w.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32800,"message":"cancelled"}}`, l.ID)
	case "until": // a file is there
		for !exists(text(l.Params.Payload)) {
			time.Sleep(time.Millisecond)
		}
		w.answer(l.ID, os.Getpid())
	case "hang":
		touch(l.Params.Payload)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		touch(l.Params.Payload)
	case "deserter": // it has left its process group as well
		signal.Ignore(syscall.SIGTERM)
		if group, err := syscall.Getpgid(os.Getppid()); err != nil || syscall.Setpgid(0, group) != nil {
			panic("it cannot leave")
		}
		touch(l.Params.Payload)
	case "garbage":
		w.write("Hello World, my secret is hunter2")
	case "batch":
		w.write(`[{"jsonrpc":"2.0","id":%s,"result":{"answer":1}}]`, l.ID)
	case "twice":
		w.answer(l.ID, 1)
		w.answer(l.ID, 2)
	case "unknown":
		w.write(`{"jsonrpc":"2.0","id":4711,"result":{"answer":1}}`)
	case "strange":
		w.write(`{"jsonrpc":"2.0","id":%s,"result":{"other":1}}`, l.ID)
	case "late":
		w.write(`{"jsonrpc":"2.0","method":"progress","params":{"id":4711,"value":1}}`)
	case "long":
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"answer":"`, l.ID)
		for block := strings.Repeat("x", 1<<20); ; {
			if _, err := os.Stdout.WriteString(block); err != nil {
				os.Exit(1)
			}
		}
	case "flood":
		for block := strings.Repeat("{}\n", 1<<18); ; {
			if _, err := os.Stdout.WriteString(block); err != nil {
				os.Exit(1)
			}
		}
	case "closes":
		_ = os.Stdout.Close()
	case "big":
		w.answer(l.ID, strings.Repeat("x", 100<<10))
	case "grow":
		grown = make([]byte, 64<<20)
		for i := range grown {
			grown[i] = 1
		}
		w.answer(l.ID, os.Getpid())
	case "fork": // what it starts keeps its pipes, in a session of its own
		cmd := exec.Command("setsid", "sleep", "1000")
		cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
		_ = cmd.Start()
		fmt.Fprintln(os.Stderr, "forked", cmd.Process.Pid)
		w.answer(l.ID, cmd.Process.Pid)
		os.Exit(0)
	case "fails":
		w.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no such pull request","data":{"retryable":true}}}`, l.ID)
	case "bug":
		w.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"KeyError: hunter2"}}`, l.ID)
	case "progress":
		w.write(`{"jsonrpc":"2.0","method":"progress","params":{"id":%s,"value":{"done":1}}}`, l.ID)
		w.write(`{"jsonrpc":"2.0","method":"of-the-future","params":[]}`)
		w.answer(l.ID, 1)
	case "model-usage":
		usage := `"usage":{"provider":"p","model":"m","inputTokens":7}`
		for _, params := range []string{`[]`, `{` + usage + `}`, `{"id":4711,` + usage + `}`} {
			w.write(`{"jsonrpc":"2.0","method":"modelUsage","params":%s}`, params)
		}
		w.write(`{"jsonrpc":"2.0","method":"modelUsage","params":{"id":%s,"usage":{"provider":"p"}}}`, l.ID)
		w.write(`{"jsonrpc":"2.0","method":"modelUsage","params":{"id":%s,%s}}`, l.ID, usage)
		w.answer(l.ID, true)
	case "progress-big":
		value := strings.Repeat("x", 64<<10)
		for range 3 {
			w.write(`{"jsonrpc":"2.0","method":"progress","params":{"id":%s,"value":"%s"}}`, l.ID, value)
		}
		w.answer(l.ID, 1)
	case "nested":
		r := w.request(`"n1"`, "requestAgent", fmt.Sprintf(`{"call":%s,"request":%s}`, l.ID, l.Params.Payload))
		w.answer(l.ID, map[string]json.RawMessage{"result": r.Result, "error": r.Error})
	case "foreign":
		r := w.request(`"n2"`, "requestAgent", `{"call":4711,"request":{"to":"agent://b","capability":"x"}}`)
		w.answer(l.ID, map[string]json.RawMessage{"result": r.Result, "error": r.Error})
	case "unmethod":
		r := w.request(`7`, "approveEverything", `{}`)
		w.answer(l.ID, map[string]json.RawMessage{"error": r.Error})
	default:
		w.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"what?"}}`, l.ID)
	}
}

var grown []byte // what "grow" has taken

func text(payload json.RawMessage) (s string) {
	_ = json.Unmarshal(payload, &s)
	return s
}

// touch makes the file that a payload names: the call has begun.
func touch(payload json.RawMessage) {
	if name := text(payload); name != "" {
		_ = os.WriteFile(filepath.Clean(name), nil, 0o600)
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
