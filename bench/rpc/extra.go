package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/byhand"
)

// What is measured besides calls.
const (
	extraCodecTime   = "codec-time"
	extraCodecAllocs = "codec-allocs"
	extraIdleMB      = "idle-mb"
	extraStartMS     = "start-ms"
	extraLoad1000    = "load-1000-s"
	extraLoad1000MB  = "load-1000-mb"
	extraLoad10000   = "load-10000-s"
)

// extras measures what is no call, once a round.
func (b *bench) extras(r *result, progress io.Writer) error {
	for round := range b.rounds {
		fmt.Fprintf(progress, "codec, idle agents: round %d of %d\n", round+1, b.rounds)
		if err := b.codec(r); err != nil {
			return err
		}
		if err := b.idle(r, round == b.rounds-1); err != nil {
			return err
		}
	}
	fmt.Fprintln(progress, "large fleets")
	used, err := b.loadFleet(1000)
	if err != nil {
		return err
	}
	r.note(extraLoad1000, used.CPU.Seconds())
	r.note(extraLoad1000MB, used.MB)
	if used.CPU > time.Second {
		return nil // the larger one would take minutes
	}
	if used, err = b.loadFleet(10_000); err == nil {
		r.note(extraLoad10000, used.CPU.Seconds())
	}
	return err
}

// codec compares encoding and decoding a request, as agentd sends it, with a codec that is
// as strict and makes the same of it. The floor's own is neither: it encodes what it knows to
// be right, decodes into parts of the message, and leaves the payload to the validation.
func (b *bench) codec(r *result) error {
	e := &envelope.Envelope{
		Kind: envelope.Request, MessageID: string(appendID(nil)), CorrelationID: string(appendID(nil)), From: callerAddr, To: calleeAddr,
		Capability: "review", ReplyTo: "nats://_INBOX.abcdefghijklmnopqrstuv", Deadline: 1790000000000, Payload: payload(200),
		Headers: envelope.Headers{
			{Key: string(traceparentKey), Value: string(appendTrace(nil))}, {Key: string(hopsKey), Value: "1"},
		},
	}
	both := func(encode func(*envelope.Envelope) ([]byte, error), decode func([]byte) (*envelope.Envelope, error)) func() error {
		return func() error {
			text, err := encode(e)
			if err == nil {
				_, err = decode(text)
			}
			return err
		}
	}
	floor, ours := both(byhand.Encode, byhand.Decode), both((*envelope.Envelope).EncodeChecked, envelope.Decode)
	const calls, turns = 2000, 10
	var used [2]usage
	for range turns { // a short turn each, so that what else runs hits both
		for i, f := range []func() error{floor, ours} {
			before := ownUsage()
			for range calls {
				if err := f(); err != nil {
					return err
				}
			}
			used[i] = used[i].plus(ownUsage().minus(before))
		}
	}
	r.note(extraCodecTime, float64(used[1].CPU)/float64(used[0].CPU))
	r.note(extraCodecAllocs, float64(used[1].Mallocs)/(calls*turns))
	return nil
}

// rest is how long an agent is left alone before its memory counts: what a start leaves
// behind goes back to the kernel by and by.
const rest = 10 * time.Second

// idle starts an agent that gets nothing to do.
func (b *bench) idle(r *result, resting bool) (err error) {
	if b.agentd == "" {
		return nil
	}
	nats, err := b.startChild("broker")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, nats.stop()) }()
	dir, err := variant{}.writeFleet()
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err != nil {
		return err
	}
	a, err := startAgent(b.agentd, dir, nats.address, "callee")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.stop()) }()
	r.note(extraStartMS, float64(a.took.Microseconds())/1000)
	if !resting {
		return nil
	}
	time.Sleep(rest)
	if rss, err := memoryOf(a.cmd.Process.Pid, "VmRSS"); err == nil { // else a system without /proc
		r.note(extraIdleMB, rss)
	}
	return nil
}

// memoryOf reads a size out of /proc, in MB.
func memoryOf(pid int, key string) (float64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
			return kb * 1024 / 1e6, err
		}
	}
	return 0, fmt.Errorf("no %s of process %d", key, pid)
}

// A fleetCost is what loading a fleet takes.
type fleetCost struct {
	CPU time.Duration `json:"cpu"` // of the first time
	MB  float64       `json:"mb"`  // at most, of two times
}

// loadFleet loads a fleet of so many agents in a process of its own.
func (b *bench) loadFleet(agents int) (cost fleetCost, err error) {
	c, err := b.startChild("fleet", strconv.Itoa(agents))
	if err != nil {
		return cost, err
	}
	return cost, errors.Join(json.Unmarshal([]byte(c.address), &cost), c.stop())
}

// measureFleet is the main function of the child of loadFleet.
func measureFleet(count string) (err error) {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := writeLargeFleet(dir, n); err != nil {
		return err
	}
	before := ownUsage().CPU
	first, err := fleet.Load(dir, daemon.LoadOptions())
	if err != nil {
		return err
	}
	cost := fleetCost{CPU: ownUsage().CPU - before}
	second, err := fleet.Load(dir, daemon.LoadOptions())
	if err != nil {
		return err
	}
	cost.MB, _ = memoryOf(os.Getpid(), "VmHWM") // 0 where there is no /proc
	runtime.KeepAlive(first)
	runtime.KeepAlive(second)
	return json.NewEncoder(os.Stdout).Encode(cost)
}

// writeLargeFleet writes a fleet in which everybody may call everybody: one peers file.
func writeLargeFleet(dir string, agents int) error {
	var members, peers strings.Builder
	members.WriteString("version: 1\nname: large\nenvironments: {default: {peersRef: ./rpc-peers.yaml}}\nagents:\n")
	peers.WriteString("version: 1\npeers:\n")
	for i := range agents {
		id := fmt.Sprintf("agent-%05d", i)
		servers := fmt.Sprintf("transports: [{kind: nats, servers: [\"nats://127.0.0.1:4222\"], subjects: {requests: agents.%s.requests}}]\n", id)
		fmt.Fprintf(&members, "  - {id: %s, path: ./%s}\n", id, id)
		fmt.Fprintf(&peers, "  - agent: agent://%s\n    %s", id, servers)
		folder := filepath.Join(dir, id)
		err := errors.Join(os.Mkdir(folder, 0o700),
			os.WriteFile(filepath.Join(folder, "agent.yaml"), []byte("name: "+id+"\nskills: {review: {process: {command: [cat]}}}\n"), 0o600),
			os.WriteFile(filepath.Join(folder, "capabilities.yaml"), []byte("version: 1\nagent: agent://"+id+"\n"+servers+
				"capabilities:\n  - name: review\n    inputSchema: {type: object, properties: {pr: {type: string}}, required: [pr]}\n"), 0o600))
		if err != nil {
			return err
		}
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "fleet.yaml"), []byte(members.String()), 0o600),
		os.WriteFile(filepath.Join(dir, "rpc-peers.yaml"), []byte(peers.String()), 0o600))
}
