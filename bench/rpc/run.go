package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/internal/gcpace"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/transport/nats"
)

// A variant is a way to configure the two agents of a fleet.
type variant struct {
	name, about              string
	noLog, rules, identities bool
	// inline says that the skill is quick.
	inline bool
	// memory is the transport instead of NATS.
	memory bool
	// worker is the program of the skill, where it is no Go function.
	worker string
}

func variants() []variant {
	return []variant{
		{name: "run", about: "two daemons as `agentd run` assembles them from files with defaults: drift gate, breaker, discovery, and the access log at both ends. GOGC is 300, as the program sets it; systems without a daemon have Go's 100. The skill is a Go function, the caller Go code in the caller's process"},
		{name: "run-inline", about: "run with `inline: true` for the skill", inline: true},
		{name: "run-nolog", about: "run with `security: {auditLog: false}` at both ends", noLog: true},
		{name: "run-rules", about: "run with permissions at the caller and `callers`, `rateLimit`, `concurrency` and `cost` at the callee", rules: true},
		{name: "run-ids", about: "run with identities: both ends prove every message and demand proofs", identities: true},
		{name: "run-full", about: "run with rules and identities", rules: true, identities: true},
	}
}

func (v variant) system() system {
	return system{name: v.name, about: v.about, aside: v.inline || v.rules != v.identities, serve: v.serve, dial: v.dial}
}

// files are the fleet's. A broker given to the daemon takes the place of the servers.
func (v variant) files() map[string]string {
	servers := `transports: [{kind: nats, servers: ["nats://127.0.0.1:4222"], subjects: {requests: ` + subject + `}}]` + "\n"
	if v.memory {
		servers = "transports: [{kind: memory, topics: {requests: " + subject + "}}]\n"
	}
	skill := "process: {command: [cat]}" // which the Go function takes the place of
	if v.inline {
		skill = "inline: true"
	}
	if v.worker != "" {
		skill = fmt.Sprintf("worker: {command: [%q, %q, worker]}", v.worker, roleFlag)
	}
	var common, caller, keys string
	if security := v.security(); security != "" {
		common = "security: {" + security + "}\n"
	}
	if v.rules {
		caller = "permissions: {allow: ['RequestAgent:agent://callee/*'], deny: ['RequestAgent:**/admin']}\n"
		keys = "    callers: ['agent://caller']\n    rateLimit: {requests: 1000000000}\n    concurrency: 1000\n    cost: {compute: 0.1}\n"
	}
	schema := strings.Join(strings.Fields(reviewSchema), " ")
	return map[string]string{
		"fleet.yaml": "version: 1\nname: bench\nagents: [{id: callee, path: ./callee}, {id: caller, path: ./caller}]\n" +
			"environments: {default: {peersRef: ./rpc-peers.yaml}}\n",
		"rpc-peers.yaml":    "version: 1\npeers:\n  - agent: agent://callee\n    " + servers,
		"caller/agent.yaml": "name: caller\n" + common + caller,
		"callee/agent.yaml": "name: callee\n" + common + "skills: {review: {" + skill + "}}\n",
		"callee/capabilities.yaml": "version: 1\nagent: agent://callee\n" + servers + "capabilities:\n  - name: review\n" +
			"    inputSchema: " + schema + "\n    outputSchema: " + schema + "\n" + keys,
	}
}

func (v variant) security() string {
	var keys []string
	if v.noLog {
		keys = append(keys, "auditLog: false")
	}
	if v.identities {
		keys = append(keys, "requireAuth: true")
	}
	return strings.Join(keys, ", ")
}

// writeFleet makes a folder with the fleet of a variant, its keys, and room for state and
// sockets.
func (v variant) writeFleet() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "bench"); err != nil { // short, because paths of sockets must be
		return "", err
	}
	for name, text := range v.files() {
		path := filepath.Join(dir, "fleet", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			return dir, err
		}
	}
	if !v.identities {
		return dir, nil
	}
	var all []fleet.Identity
	for _, id := range []string{"caller", "callee"} {
		keys, err := identity.Store{Path: pathsIn(dir).Identity(id)}.Ensure(time.Now())
		if err != nil {
			return dir, err
		}
		all = append(all, fleet.Identity{Agent: envelope.AddressOf(id), Auth: &fleet.PeerAuth{
			Provider: fleet.NKey, PublicKeys: []fleet.PublicKey{{Key: keys[0].Public}},
		}})
	}
	return dir, fleet.WriteIdentities(filepath.Join(dir, "fleet"), all)
}

func pathsIn(dir string) daemon.Paths {
	return daemon.Paths{State: filepath.Join(dir, "s"), Runtime: filepath.Join(dir, "r")}
}

// start runs a member of the fleet in dir, as `agentd run` does: the skill is a Go
// function, so that nothing but agentd is measured.
func start(dir, server, id string, handlers map[string]rpc.Handler) (*daemon.Daemon, error) {
	gcpace.Relax(os.Getenv)
	f, err := fleet.Load(filepath.Join(dir, "fleet"), daemon.LoadOptions())
	if err != nil {
		return nil, err
	}
	return daemon.Start(context.Background(), daemon.Config{
		Fleet: f, Paths: pathsIn(dir), Version: "bench", OwnsProcess: true, NATS: nats.Options{Servers: []string{server}}, Handlers: handlers,
		Logger: quietLog(),
	}, id)
}

func (v variant) serve(target string) (*callee, error) {
	dir, err := v.writeFleet()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	d, err := start(dir, target, "callee", echoSkill())
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c := &callee{address: target + " " + dir}
	c.stop = func() error { return errors.Join(d.Stop(context.Background()), os.RemoveAll(dir)) }
	if v.noLog {
		return c, nil
	}
	log, err := openAccessLog(d)
	if err != nil {
		return nil, errors.Join(err, c.stop())
	}
	c.recorded = log.recorded
	return c, nil
}

// A runClient is a daemon with code that makes calls.
type runClient struct{ daemon *daemon.Daemon }

// A loggedClient is one with an access log.
type loggedClient struct {
	runClient
	*accessLog
}

func (v variant) dial(address string) (client, error) {
	server, dir, ok := strings.Cut(address, " ")
	if !ok {
		return nil, fmt.Errorf("%q is no address of a callee", address)
	}
	d, err := start(dir, server, "caller", nil)
	if err != nil {
		return nil, err
	}
	c := runClient{d}
	if v.noLog {
		return c, nil
	}
	log, err := openAccessLog(d)
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return loggedClient{c, log}, nil
}

func (c runClient) call(payload []byte) error { return review(c.daemon.Client(), payload) }

func (c runClient) close() error { return c.daemon.Stop(context.Background()) }

// An accessLog is the log of a running daemon, as a reader sees it.
type accessLog struct{ reader *auditchain.Reader }

func openAccessLog(d *daemon.Daemon) (*accessLog, error) {
	reader, err := auditchain.OpenReader(context.Background(), d.AuditDB())
	return &accessLog{reader}, err
}

// recorded is the number of the newest record.
func (a *accessLog) recorded() (int64, error) {
	for e, err := range a.reader.Query(context.Background(), auditchain.Filter{Order: auditchain.NewestFirst, Limit: 1}) {
		return e.Seq, err
	}
	return 0, nil
}
