package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A plan is what to do with each fleet.
type plan struct {
	calls int           // of each agent
	idle  time.Duration // to watch a fleet that does nothing; 0 leaves it out
	// checkpoints measures those of logs with witnesses, which takes two of their intervals.
	checkpoints bool
	kill        bool // a server, at the end
}

// quiet is how long the servers' counts must stay the same to have settled.
const quiet = 1500 * time.Millisecond

// measure runs one fleet and returns its rows.
func measure(s shape, p plan, progress func(string)) (rows []row, err error) {
	c, err := startCluster(s.Servers)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	base, err := c.settled(quiet)
	if err != nil {
		return nil, err
	}
	progress(fmt.Sprintf("%d agents: starting", s.Agents))
	debug.FreeOSMemory() // what the fleet before has left
	begun, cpu, rss := time.Now(), cpuTime(), residentBytes()
	r, err := startFleet(s, c)
	if r != nil {
		defer func() { err = errors.Join(err, r.stop()) }()
	}
	if err != nil {
		return nil, err
	}
	m := &measurement{running: r, base: base, plan: p, progress: progress}
	m.observe("time to start all agents, "+strconv.Itoa(startAtOnce)+" at a time", time.Since(begun).Seconds(), "s")
	m.observe("CPU of all agents to start", (cpuTime() - cpu).Seconds(), "s")
	for _, phase := range []func() error{m.standing, m.joining, m.calling, m.witnessing, m.idling, m.failing} {
		if err := phase(); err != nil {
			return m.rows, err
		}
	}
	m.observe("memory of this process for each agent", (residentBytes()-rss)/float64(s.Agents)/(1<<20), "MB")
	return m.rows, nil
}

// A measurement is one fleet's.
type measurement struct {
	*running
	base     counts
	plan     plan
	rows     []row
	progress func(string)
}

func (m *measurement) check(name, formula string, predicted, measured float64, unit string) {
	m.rows = append(m.rows, row{Name: name, Formula: formula, Predicted: predicted, Measured: measured, Unit: unit})
	m.progress(fmt.Sprintf("  %-60s %12.1f %12.1f %s", name, predicted, measured, unit))
}

func (m *measurement) observe(name string, measured float64, unit string) {
	m.rows = append(m.rows, row{Name: name, Measured: measured, Unit: unit, Observed: true})
	m.progress(fmt.Sprintf("  %-60s %12s %12.1f %s", name, "", measured, unit))
}

// standing is what the servers hold once all agents run.
func (m *measurement) standing() error {
	now, err := m.cluster.settled(quiet)
	if err != nil {
		return err
	}
	s := m.shape
	m.check("connections, all servers", "N", float64(s.Agents), now.Connections, "")
	m.check("subscriptions of clients, all servers", "N·(9+P)", s.clientSubscriptions(), now.ClientSubs, "")
	m.check("subscriptions that one server holds", "n·(9+P) + (K−1)·(8n + 1 + min(N, n·P)), n = N/K", s.serverSubscriptions(), now.ServerSubs-m.base.ServerSubs, "")
	m.observe("memory of one server", now.Memory/(1<<20), "MB")
	m.observe("memory of one server for each agent of the fleet", (now.Memory-m.base.Memory)/(1<<10)/float64(s.Agents), "KB")
	m.observe("messages from clients while all started", now.In-m.base.In, "")
	m.observe("bytes to clients while all started", (now.OutBytes-m.base.OutBytes)/(1<<10), "KB")
	files, bytes, err := m.logs()
	m.observe("files of one agent", files/float64(s.Agents), "")
	m.observe("bytes of state of one agent that has just started", bytes/float64(s.Agents)/(1<<10), "KB")
	return err
}

// joining is what one more agent costs everybody.
func (m *measurement) joining() error {
	awaitCheckpoints := func() {
		if m.shape.Witnesses > 0 {
			time.Sleep(checkpointInterval)
		}
	}
	awaitCheckpoints() // those of what the witnesses recorded when all started
	before, err := m.cluster.settled(quiet)
	if err != nil {
		return err
	}
	begun := time.Now()
	d, err := m.start(m.shape.Agents)
	if err != nil {
		return err
	}
	m.daemons = append(m.daemons, d)
	took := time.Since(begun)
	awaitCheckpoints()
	after, err := m.cluster.settled(quiet)
	if err != nil {
		return err
	}
	spent := after.since(before)
	m.check("messages from clients when one agent joins", "7 + 4·W·(1+W)", m.shape.joinMessages(), spent.In, "")
	m.observe("bytes to clients when one agent joins", spent.OutBytes/(1<<10), "KB")
	m.observe("time of that agent's start", took.Seconds()*1000, "ms")
	return nil
}

// calling is what calls cost the servers. Checkpoints would be among what is counted, so
// fleets with witnesses are left out.
func (m *measurement) calling() error {
	if m.plan.calls == 0 || m.shape.Witnesses > 0 {
		return nil
	}
	s, timeout := m.shape, 30*time.Second
	first := func(i int) error { // which asks for the peer's contract
		for k := range s.Peers {
			if err := m.call(i, k, timeout); err != nil {
				return err
			}
		}
		return nil
	}
	before, err := m.cluster.settled(quiet)
	if err != nil {
		return err
	}
	if err := m.each(s.Agents, 64, first); err != nil {
		return err
	}
	after, err := m.cluster.settled(quiet)
	if err != nil {
		return err
	}
	pairs := float64(s.Agents * s.Peers)
	m.check("messages from clients for each pair's first call", "2 + 2 (the contract)", 4, after.since(before).In/pairs, "")
	begun := time.Now()
	err = m.each(s.Agents*m.plan.calls, 64, func(n int) error { return m.call(n%s.Agents, n/s.Agents%s.Peers, timeout) })
	if err != nil {
		return err
	}
	took := time.Since(begun)
	now, err := m.cluster.settled(quiet)
	if err != nil {
		return err
	}
	spent, calls := now.since(after), float64(s.Agents*m.plan.calls)
	m.observe("calls a second, this process and the servers on this machine", calls/took.Seconds(), "/s")
	m.check("messages from clients for each call", "2", 2, spent.In/calls, "")
	m.check("messages that servers send each other for each call", "2·(K−1)/K", 2*s.crossing(), (spent.AllIn-spent.In)/calls, "")
	m.check("bytes from clients for each call", fmt.Sprintf("%d + 2·payload", callFields), callBytes(), spent.InBytes/calls, "B")
	_, size, err := m.logs()
	m.observe("state of one agent on disk after these calls, with SQLite's write-ahead log", size/float64(s.Agents)/(1<<10), "KB")
	return err
}

// checkpointInterval is auditchain.DefaultCheckpointInterval, with time to publish.
const checkpointInterval = 12 * time.Second

// witnessing is what one checkpoint of each log costs. It watches for the minute in which
// every agent asks once for its replicas, so that this can be subtracted.
func (m *measurement) witnessing() error {
	if !m.plan.checkpoints || m.shape.Witnesses == 0 {
		return nil
	}
	// The first call asks for the contract.
	first := func(i int) error { return m.call(i, 0, time.Minute) }
	if err := m.each(m.shape.Agents, 64, first); err != nil {
		return err
	}
	time.Sleep(checkpointInterval)
	before, err := m.cluster.settled(quiet)
	if err != nil {
		return err
	}
	minute := time.NewTimer(time.Minute)
	defer minute.Stop()
	if err := m.each(m.shape.Agents, 64, first); err != nil {
		return err
	}
	<-minute.C
	after, err := m.cluster.read()
	if err != nil {
		return err
	}
	n, spent := float64(m.shape.Agents), after.since(before)
	m.check("messages from clients for each checkpoint", "4·W", m.shape.checkpointMessages(), spent.In/n-2-2, "")
	m.check("bytes from clients for each checkpoint", fmt.Sprintf("%d·W", witnessBytes), witnessBytes*float64(m.shape.Witnesses), spent.InBytes/n-callBytes()-statsBytes, "B")
	return nil
}

// idling is what a fleet costs that does nothing.
func (m *measurement) idling() error {
	if m.plan.idle == 0 {
		return nil
	}
	before, err := m.cluster.settled(quiet)
	if err != nil {
		return err
	}
	cpu, begun := cpuTime(), time.Now()
	time.Sleep(m.plan.idle)
	after, err := m.cluster.read()
	if err != nil {
		return err
	}
	minutes := time.Since(begun).Minutes()
	spent, n := after.since(before), float64(m.shape.Agents+1)
	m.check("messages from clients in a minute without calls", "2·N", 2*n, spent.In/minutes, "")
	m.check("bytes from clients in a minute without calls", fmt.Sprintf("%d·N", statsBytes), statsBytes*n, spent.InBytes/minutes, "B")
	m.observe("CPU of an agent without calls", float64((cpuTime()-cpu).Microseconds())/n/minutes/60, "µs/s")
	return nil
}

// failing kills a server, and waits until every agent's call passes again.
func (m *measurement) failing() error {
	if !m.plan.kill {
		return nil
	}
	begun := time.Now()
	if err := m.cluster[0].kill(); err != nil {
		return err
	}
	took := make([]time.Duration, m.shape.Agents)
	err := m.each(m.shape.Agents, m.shape.Agents, func(i int) error {
		for {
			if err := m.call(i, 0, 10*time.Second); err == nil {
				took[i] = time.Since(begun)
				return nil
			} else if time.Since(begun) > 2*time.Minute {
				return err
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	if err != nil {
		return err
	}
	slices.Sort(took)
	m.observe("one server killed: half of the agents call again after", took[len(took)/2].Seconds(), "s")
	m.observe("one server killed: 99 % of the agents call again after", took[len(took)*99/100].Seconds(), "s")
	m.observe("one server killed: all agents call again after", took[len(took)-1].Seconds(), "s")
	return nil
}

// residentBytes is the memory of this process, 0 where /proc does not have it.
func residentBytes() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	pages, err := strconv.ParseFloat(fields[1], 64)
	if err != nil {
		return 0
	}
	return pages * float64(os.Getpagesize())
}
