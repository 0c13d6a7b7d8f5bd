package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/transport/nats"
)

// capabilityName is the one capability of each agent.
const capabilityName = "answer"

// answerSchema is of both ends of a call.
const answerSchema = "{type: object, additionalProperties: false, required: [text], properties: {text: {type: string, minLength: 1}}}"

func idOf(i int) string { return fmt.Sprintf("agent-%05d", i) }

func subjectOf(id string) string { return "agents." + id + ".requests" }

// writeFleet writes the files of a fleet in which agent i has the P agents after it as
// peers, the last ones those at the beginning, and the first W of them as witnesses. One
// more agent than the shape has is listed, which joins late.
func (s shape) writeFleet(root string) error {
	var agents strings.Builder
	all := s.Agents + 1
	write := func(name, text string) error {
		path := filepath.Join(root, name)
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
	}
	transports := func(id string) string {
		return "transports: [{kind: nats, servers: [\"nats://127.0.0.1:4222\"], subjects: {requests: " + subjectOf(id) + "}}]\n"
	}
	for i := range all {
		id := idOf(i)
		fmt.Fprintf(&agents, "  - {id: %s, path: ./%s}\n", id, id)
		peers, witnesses := "version: 1\npeers:\n", []string(nil)
		for k := range s.Peers {
			peer := idOf(s.peerOf(i, k))
			peers += "  - agent: agent://" + peer + "\n    " + transports(peer)
			if k < s.Witnesses {
				witnesses = append(witnesses, "agent://"+peer)
			}
		}
		settings := "name: " + id + "\nskills: {" + capabilityName + ": {process: {command: [cat]}}}\n" // the Go function takes its place
		if witnesses != nil {
			settings += "audit: {witnesses: ['" + strings.Join(witnesses, "', '") + "']}\n"
		}
		contract := "version: 1\nagent: agent://" + id + "\n" + transports(id) + "capabilities:\n  - name: " + capabilityName +
			"\n    inputSchema: " + answerSchema + "\n    outputSchema: " + answerSchema + "\n"
		for name, text := range map[string]string{"agent.yaml": settings, "capabilities.yaml": contract, "rpc-peers.yaml": peers} {
			if err := write(id+"/"+name, text); err != nil {
				return err
			}
		}
	}
	return write("fleet.yaml", "version: 1\nname: scale\nagents:\n"+agents.String())
}

// peerOf is the number of the k-th peer of agent i. The one that joins late calls others,
// and nobody calls it.
func (s shape) peerOf(i, k int) int { return (i + 1 + k) % s.Agents }

// A running fleet.
type running struct {
	shape   shape
	cluster cluster
	dir     string
	files   *fleet.Fleet
	daemons []*daemon.Daemon
}

// startAtOnce is how many agents start side by side.
const startAtOnce = 16

// startFleet runs the agents of a shape, agent i at server i mod K.
func startFleet(s shape, c cluster) (*running, error) {
	dir, err := os.MkdirTemp("", "scale") // short, because paths of sockets must be
	if err != nil {
		return nil, err
	}
	r := &running{shape: s, cluster: c, dir: dir, daemons: make([]*daemon.Daemon, s.Agents)}
	if err := s.writeFleet(filepath.Join(dir, "fleet")); err != nil {
		return r, err
	}
	if r.files, err = fleet.Load(filepath.Join(dir, "fleet"), daemon.LoadOptions()); err != nil {
		return r, err
	}
	return r, r.each(s.Agents, startAtOnce, func(i int) (err error) {
		r.daemons[i], err = r.start(i)
		return err
	})
}

// each calls f for all numbers below n, some at the same time.
func (r *running) each(n, atOnce int, f func(i int) error) error {
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, n)
	for range atOnce {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				errs[i] = f(i)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func (r *running) start(i int) (*daemon.Daemon, error) {
	echo := rpc.HandlerFunc(func(_ context.Context, inv *rpc.Invocation) (json.RawMessage, error) { return inv.Payload, nil })
	return daemon.Start(context.Background(), daemon.Config{
		Fleet: r.files, Paths: daemon.Paths{State: filepath.Join(r.dir, "s"), Runtime: filepath.Join(r.dir, "r")}, Version: "1.0.0",
		NATS: nats.Options{Servers: []string{r.cluster[i%len(r.cluster)].Client}}, Handlers: map[string]rpc.Handler{capabilityName: rpc.Inline(echo)},
		Logger: slog.New(slog.DiscardHandler),
	}, idOf(i))
}

// call makes one call from agent i to its k-th peer.
func (r *running) call(i, k int, timeout time.Duration) error {
	to := envelope.AddressOf(idOf(r.shape.peerOf(i, k)))
	_, err := r.daemons[i].Client().RequestAgent(context.Background(), rpc.Request{To: to, Capability: capabilityName, Payload: payload, Timeout: timeout})
	return err
}

var payload = json.RawMessage(`{"text":"` + strings.Repeat("x", payloadBytes-len(`{"text":""}`)) + `"}`)

func (r *running) stop() error {
	var errs []error
	errs = append(errs, r.each(len(r.daemons), startAtOnce, func(i int) error {
		if r.daemons[i] == nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return r.daemons[i].Stop(ctx)
	}))
	return errors.Join(append(errs, os.RemoveAll(r.dir))...)
}

// logs are the files of the audit logs, and their bytes.
func (r *running) logs() (files, bytes float64, err error) {
	err = filepath.WalkDir(filepath.Join(r.dir, "s"), func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			files, bytes = files+1, bytes+float64(info.Size())
		}
		return err
	})
	return files, bytes, err
}
