package main

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// callLimit bounds every call: reached only when something is broken.
const callLimit = 20 * time.Second

// smallSize is the size of the smaller payload of a whole run.
const smallSize = 200

// socketName is the system of real processes only.
const socketName = "socket"

// errWrongReply says that a callee answered something else than it was sent.
var errWrongReply = errors.New("the reply is not the request's payload")

// A system is one way to call another process, which answers with what it was
// sent.
type system struct {
	name string
	// about says on the page what is measured.
	about string
	// aside systems are measured under few loads: they say what something costs, and are no
	// choice of their own.
	aside bool
	// direct systems have no broker between.
	direct bool
	// within systems have both ends in one process.
	within bool
	// serve starts a callee; target is the broker's URL, and more where addresses of other
	// systems need it.
	serve func(target string) (*callee, error)
	// dial opens one connection, which all callers share.
	dial func(address string) (client, error)
}

// A callee serves until it is stopped.
type callee struct {
	// address is what callers dial.
	address string
	stop    func() error
	// recorded returns the number of records that the access log has, and is nil where there
	// is no log.
	recorded func() (int64, error)
	// used returns what the callee's own processes have used, besides this one. It may be
	// nil.
	used func() (usage, error)
}

// A client makes calls; it is safe for concurrent use.
type client interface {
	// call bounds its time by callLimit, in the cheapest way that the system has.
	call(payload []byte) error
	close() error
}

// A recorder is a client that keeps an access log.
type recorder interface {
	// recorded returns the number of its records.
	recorded() (int64, error)
}

// systems are in the order of the page.
func systems() []system {
	all := []system{
		{name: "raw", about: "nats.go: QueueSubscribe and Request, no context for a call, no validation", serve: serveRaw, dial: dialRaw},
		{name: "micro", about: "nats.go's micro service, called by Request", serve: serveMicro, dial: dialRaw},
		{name: "grpc", about: "gRPC-go unary, a message with one bytes field, a deadline for each call, no broker, no validation", direct: true, serve: serveGRPC, dial: dialGRPC},
		{name: "connect", about: "connect-go unary over HTTP/1.1, a message with one bytes field, no broker, no validation", direct: true, serve: serveConnect, dial: dialConnect},
		{name: "mcp", about: "a tool of an MCP server with the Go SDK over streamable HTTP, stateless, JSON responses; the SDK validates arguments and result at the server", direct: true, serve: serveMCP, dial: dialMCP},
		{name: "rest", about: "net/http, JSON in and out, both validated at the server by santhosh-tekuri/jsonschema/v6", direct: true, serve: serveREST, dial: dialREST},
		{name: "floor", about: "agentd's envelope by a hand-written encoder and strict decoder, a goroutine for each request, four validations, nothing else", serve: serveFloor, dial: dialFloor},
		{name: "rpc", about: "the packages rpc/caller and rpc/callee over transport/nats: no daemon, no access log", serve: serveRPC, dial: dialRPC},
		{name: "rpc-inline", about: "rpc with an inline skill: a Go function that has promised to be quick", aside: true, serve: serveInline, dial: dialRPC},
	}
	for _, v := range variants() {
		all = append(all, v.system())
	}
	all = append(all, system{
		name: socketName, about: "two `agentd run` processes of the released program; calls come over the caller's control socket (HTTP on a Unix socket), the skill is a worker process: what programs in Python or Node see",
		serve: serveSocket, dial: dialSocket,
	})
	return append(all, memorySystems()...)
}

// Name and About are for the page.
func (s system) Name() string  { return s.name }
func (s system) About() string { return s.about }

// takes reports whether the system is measured under a load of a whole run.
func (s system) takes(load shape) bool {
	return !s.aside || load.Size == smallSize && (load.Callers == 1 || load.Callers == 256)
}

// choose returns the systems with the names of a list, in its order of the page; "" are
// all.
func choose(list string) ([]system, error) {
	all := systems()
	if list == "" {
		return all, nil
	}
	wanted := map[string]bool{}
	for _, name := range strings.Split(list, ",") {
		wanted[strings.TrimSpace(name)] = true
	}
	var chosen []system
	var names []string
	for _, s := range all {
		names = append(names, s.name)
		if wanted[s.name] {
			chosen = append(chosen, s)
			delete(wanted, s.name)
		}
	}
	for name := range wanted {
		return nil, fmt.Errorf("no system %q; there are %s", name, strings.Join(names, ", "))
	}
	return chosen, nil
}
