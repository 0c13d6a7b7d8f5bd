package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// nodeFlag makes this program one server of the cluster: -node <name> <routes>. It prints
// its addresses as one JSON object and ends with its standard input.
const nodeFlag = "-node"

// startLimit bounds the start of a server and of the cluster.
const startLimit = 30 * time.Second

// An endpoints are where a server is reached.
type endpoints struct {
	Client  string `json:"client"`
	Monitor string `json:"monitor"`
	Route   string `json:"route"`
}

// runNode is the child.
func runNode(name, routes string) error {
	opts := &server.Options{
		ServerName: name, Host: "127.0.0.1", Port: server.RANDOM_PORT, HTTPHost: "127.0.0.1", HTTPPort: server.RANDOM_PORT,
		NoSigs: true, NoLog: true,
		Cluster: server.ClusterOpts{Name: "scale", Host: "127.0.0.1", Port: server.RANDOM_PORT},
	}
	for r := range strings.FieldsSeq(routes) {
		u, err := url.Parse(r)
		if err != nil {
			return err
		}
		opts.Routes = append(opts.Routes, u)
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(startLimit) {
		return errors.New("the server did not start")
	}
	at := endpoints{Client: s.ClientURL(), Monitor: "http://" + s.MonitorAddr().String(), Route: "nats://" + net.JoinHostPort("127.0.0.1", fmt.Sprint(s.ClusterAddr().Port))}
	if err := json.NewEncoder(os.Stdout).Encode(at); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// A node is one server, in a process of its own, so that its memory is its own.
type node struct {
	endpoints
	process *exec.Cmd
	stdin   io.Closer
}

func startNode(name string, routes []string) (*node, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	n := &node{process: exec.CommandContext(context.Background(), self, nodeFlag, name, strings.Join(routes, " "))}
	n.process.Stderr = os.Stderr
	if n.stdin, err = n.process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := n.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := n.process.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &n.endpoints)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("server %s: %w", name, err), n.kill())
	}
	return n, nil
}

// kill ends the server as a power cut does: clients and routes find closed connections.
func (n *node) kill() error {
	_ = n.process.Process.Kill() // it may have ended
	_ = n.process.Wait()         // it was killed, which is its error
	_ = n.stdin.Close()          // Wait may have closed it
	return nil
}

func (n *node) get(path string, into any) error {
	resp, err := http.Get(n.Monitor + path)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	return json.NewDecoder(resp.Body).Decode(into)
}

// A cluster is the servers that run.
type cluster []*node

func startCluster(servers int) (c cluster, err error) {
	var routes []string
	for i := range servers {
		n, err := startNode(fmt.Sprintf("node%d", i), routes)
		if err != nil {
			return nil, errors.Join(err, c.stop())
		}
		c, routes = append(c, n), append(routes, n.Route)
	}
	ready := func() bool {
		for _, n := range c {
			var v server.Varz
			if n.get("/varz", &v) != nil || v.Remotes < servers-1 {
				return false
			}
		}
		return true
	}
	if !eventually(startLimit, ready) {
		return nil, errors.Join(errors.New("the servers did not form a cluster"), c.stop())
	}
	return c, nil
}

func (c cluster) stop() error {
	var errs []error
	for _, n := range c {
		errs = append(errs, n.kill())
	}
	return errors.Join(errs...)
}

// eventually polls, as nats-server has no events for what is asked.
func eventually(limit time.Duration, done func() bool) bool {
	for deadline := time.Now().Add(limit); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// counts are the sums over the servers of a cluster.
type counts struct {
	Connections, ClientSubs, ServerSubs float64 // ServerSubs and Memory are means of the servers
	Memory                              float64
	In, Out, InBytes, OutBytes          float64 // of clients
	AllIn, AllOut                       float64 // with routes
	RouteBytes                          float64
}

// read asks /varz, /connz and /routez of each server.
func (c cluster) read() (sum counts, err error) {
	for _, n := range c {
		var v server.Varz
		var conns server.Connz
		var routes server.Routez
		if err := errors.Join(n.get("/varz", &v), n.get("/connz?limit=100000", &conns), n.get("/routez", &routes)); err != nil {
			return sum, err
		}
		k := float64(len(c))
		sum.Connections += float64(v.Connections)
		sum.ServerSubs += float64(v.Subscriptions) / k
		sum.Memory += float64(v.Mem) / k
		sum.In, sum.Out = sum.In+float64(v.InClientMsgs), sum.Out+float64(v.OutClientMsgs)
		sum.InBytes, sum.OutBytes = sum.InBytes+float64(v.InClientBytes), sum.OutBytes+float64(v.OutClientBytes)
		sum.AllIn, sum.AllOut = sum.AllIn+float64(v.InMsgs), sum.AllOut+float64(v.OutMsgs)
		for _, conn := range conns.Conns {
			sum.ClientSubs += float64(conn.NumSubs)
		}
		for _, r := range routes.Routes {
			sum.RouteBytes += float64(r.InBytes)
		}
	}
	return sum, nil
}

// since is what was counted after an earlier reading.
func (c counts) since(before counts) counts {
	c.In, c.Out, c.InBytes, c.OutBytes = c.In-before.In, c.Out-before.Out, c.InBytes-before.InBytes, c.OutBytes-before.OutBytes
	c.AllIn, c.AllOut, c.RouteBytes = c.AllIn-before.AllIn, c.AllOut-before.AllOut, c.RouteBytes-before.RouteBytes
	return c
}

// settled reads once the counts do not change for a while: agents finish what they began.
func (c cluster) settled(quiet time.Duration) (counts, error) {
	last, err := c.read()
	for since := time.Now(); err == nil && time.Since(since) < quiet; time.Sleep(quiet / 10) {
		var now counts
		if now, err = c.read(); now.In != last.In || now.Out != last.Out || now.ServerSubs != last.ServerSubs {
			last, since = now, time.Now()
		}
	}
	return last, err
}
