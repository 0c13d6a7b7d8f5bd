package natstest

import (
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// startLimit bounds the start of a server or a cluster. It is long, because a machine
// that runs all tests at once may be busy.
const startLimit = 20 * time.Second

// The first of the ports for routes and for clients, 10,000 of each. They are below those from
// which systems choose ports for connections: of those, anybody's connection may take the port of
// a server that a test has stopped, which then cannot start again.
const (
	routePorts  = 10_000
	clientPorts = 20_000
)

// steadyPorts returns ports of loopback that are free, from those after first.
func steadyPorts(t testing.TB, first, count int) (ports []int) {
	t.Helper()
	for tries := 0; len(ports) < count; tries++ {
		port := first + rand.IntN(10_000) //nolint:gosec // other tests are to choose others, which nobody needs to guess
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			if tries > 1000 {
				t.Fatalf("no port is free: %v", err)
			}
			continue
		}
		defer func() { _ = l.Close() }() // at the end, so that none is chosen twice
		ports = append(ports, port)
	}
	return ports
}

// A Server is a nats-server on a loopback port of its own.
type Server struct {
	t       testing.TB
	opts    *server.Options
	running *server.Server
	path    string // of the configuration file
	store   string // folder of the storage
}

// Run starts a server, which stops when the test ends. conf is in nats-server's
// configuration language, or empty.
func Run(t testing.TB, conf string) *Server {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	return RunFile(t, path)
}

// RunFile is Run with a configuration file, which [Server.Reload] reads again.
func RunFile(t testing.TB, path string) *Server {
	t.Helper()
	s := &Server{t: t, path: path, store: t.TempDir()}
	s.configure(steadyPorts(t, clientPorts, 1)[0])
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// configure reads the configuration file.
func (s *Server) configure(port int) {
	s.t.Helper()
	opts, err := server.ProcessConfigFile(s.path)
	if err != nil {
		s.t.Fatalf("nats-server configuration: %v", err)
	}
	opts.Host, opts.Port = "127.0.0.1", port
	opts.NoLog, opts.NoSigs = true, true
	opts.StoreDir = s.store
	s.opts = opts
}

// Reload has the server take over its configuration file, running or not.
func (s *Server) Reload() {
	s.t.Helper()
	s.configure(s.opts.Port)
	if s.running == nil {
		return
	}
	if err := s.running.ReloadOptions(s.opts.Clone()); err != nil {
		s.t.Fatalf("nats-server: %v", err)
	}
}

// Restart has the server take over its configuration file by a restart. That of a server with
// JetStream must not be reloaded in the process of a test: nats-server 2.15 has a data race there.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.Reload()
	s.Start()
}

// Start starts a stopped server again, on the same port and with the same storage.
func (s *Server) Start() {
	s.t.Helper()
	running, err := server.NewServer(s.opts.Clone())
	if err != nil {
		s.t.Fatalf("nats-server: %v", err)
	}
	running.Start()
	if !running.ReadyForConnections(startLimit) {
		running.Shutdown()
		s.t.Fatal("nats-server did not start")
	}
	s.running = running
}

// Stop stops the server and closes every connection to it. It may be called twice.
func (s *Server) Stop() {
	if s.running != nil {
		s.running.Shutdown()
		s.running.WaitForShutdown()
		s.running = nil
	}
}

// RunCluster starts servers that form one cluster, and returns when each has a route to
// every other. They stop when the test ends.
func RunCluster(t testing.TB, nodes int) []*Server {
	t.Helper()
	var servers []*Server
	routes := ""
	for i := range nodes {
		s := Run(t, "server_name: node"+strconv.Itoa(i)+"\ncluster { name: test, listen: \"127.0.0.1:"+strconv.Itoa(steadyPorts(t, routePorts, 1)[0])+"\", routes: ["+routes+"] }")
		routes = "\"nats://" + s.running.ClusterAddr().String() + "\""
		servers = append(servers, s)
	}
	deadline := time.Now().Add(startLimit)
	for _, s := range servers {
		for len(s.peers()) < nodes-1 {
			if time.Now().After(deadline) {
				t.Fatal("the servers did not form a cluster")
			}
			time.Sleep(5 * time.Millisecond) // nats-server has no event for it
		}
	}
	return servers
}

// peers are the names of the servers to which s has routes.
func (s *Server) peers() map[string]bool {
	names := map[string]bool{}
	routes, err := s.running.Routez(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range routes.Routes {
		names[r.RemoteName] = true
	}
	return names
}

// URL is the URL for clients.
func (s *Server) URL() string { return "nats://" + s.Addr() }

// Addr is its host and port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.opts.Port)) }

// RunJetStreamCluster starts servers that form one cluster with JetStream, and returns
// when each has an up-to-date view of its elected leader. They stop when the test
// ends.
func RunJetStreamCluster(t testing.TB, nodes int) []*Server {
	t.Helper()
	// Each server must know all routes when it starts, because the routes determine how
	// many votes elect a leader. So the ports are chosen before the first starts.
	ports, routes := steadyPorts(t, routePorts, nodes), make([]string, nodes)
	for i, port := range ports {
		routes[i] = "\"nats://127.0.0.1:" + strconv.Itoa(port) + "\""
	}
	servers := make([]*Server, nodes)
	for i, port := range ports {
		servers[i] = Run(t, "server_name: node"+strconv.Itoa(i)+"\njetstream {}\ncluster { name: test, listen: \"127.0.0.1:"+strconv.Itoa(port)+
			"\", routes: ["+strings.Join(routes, ", ")+"] }")
	}
	deadline := time.Now().Add(startLimit)
	for _, s := range servers {
		for !s.running.JetStreamIsCurrent() {
			if time.Now().After(deadline) {
				t.Fatal("the cluster has no leader")
			}
			time.Sleep(5 * time.Millisecond) // nats-server has no event for it
		}
	}
	return servers
}

// LeadsStream reports whether the server runs and leads a stream of the global account.
func (s *Server) LeadsStream(name string) bool {
	return s.running != nil && s.running.JetStreamIsStreamLeader("$G", name)
}
