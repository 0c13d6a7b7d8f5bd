package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/gcpace"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/memory"
)

// memorySystems have both ends in one process, over the memory transport.
func memorySystems() []system {
	logged := variant{name: "memory-run", memory: true}
	bare := variant{name: "memory-run-nolog", memory: true, noLog: true}
	return []system{
		{name: "memory-floor", about: "the floor over transport/memory, both ends in one process", within: true, aside: true, dial: dialMemoryFloor},
		{name: "memory-rpc", about: "rpc over transport/memory", within: true, aside: true, dial: dialMemoryRPC},
		{name: "memory-run", about: "run over transport/memory, as `agentd fleet run` has it, with the access logs of both agents", within: true, aside: true, dial: logged.dialFleet},
		{name: "memory-run-nolog", about: "the same without access logs", within: true, aside: true, dial: bare.dialFleet},
	}
}

func dialMemoryFloor(string) (client, error) {
	bus := memory.NewBus(memory.Options{})
	near, far := bus.Connect(), bus.Connect()
	const inbox = "floor.replies"
	publish := func(on *memory.Conn, topic string, data []byte) error { // the bus keeps what it gets
		return on.Publish(context.Background(), transport.Message{Topic: topic, Data: bytes.Clone(data)})
	}
	f, err := newFloorCallee(func(topic string, data []byte) error { return publish(far, topic, data) })
	if err != nil {
		return nil, err
	}
	c, err := newFloorClient("nats://"+inbox, func(data []byte) error { return publish(near, subject, data) },
		func() error { return errors.Join(near.Close(), far.Close()) })
	if err != nil {
		return nil, err
	}
	_, err = far.Subscribe(subject, "g", func(m transport.Message) { go f.serve(m.Data) })
	if err == nil {
		_, err = near.Subscribe(inbox, "", func(m transport.Message) { c.receive(m.Data) })
	}
	return c, err
}

func dialMemoryRPC(string) (client, error) {
	doc, err := document()
	if err != nil {
		return nil, err
	}
	bus := memory.NewBus(memory.Options{})
	near, far := bus.Connect(), bus.Connect()
	stop, err := serveInbox(doc, far, echoSkill())
	if err != nil {
		return nil, errors.Join(err, near.Close(), far.Close())
	}
	return dialOn(near, memory.Kind, func() error { return errors.Join(stop(), near.Close(), far.Close()) })
}

// A fleetClient is a daemon among others of its process.
type fleetClient struct {
	runClient
	fleet *daemon.Fleet
	dir   string
	logs  []*accessLog
}

// dialFleet runs the whole fleet in this process.
func (v variant) dialFleet(string) (client, error) {
	dir, err := v.writeFleet()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	f, err := fleet.Load(filepath.Join(dir, "fleet"), daemon.LoadOptions())
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	gcpace.Relax(os.Getenv)
	running, err := daemon.StartFleet(context.Background(), daemon.Config{
		Fleet: f, Paths: pathsIn(dir), Version: "bench", OwnsProcess: true, Handlers: echoSkill(), Logger: quietLog(),
	})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	caller, _ := running.Daemon("caller")
	c := &fleetClient{runClient: runClient{caller}, fleet: running, dir: dir}
	for _, d := range running.Daemons {
		if v.noLog {
			break
		}
		log, err := openAccessLog(d)
		if err != nil {
			return nil, errors.Join(err, c.close())
		}
		c.logs = append(c.logs, log)
	}
	return c, nil
}

// quietLog shows errors only: a flood loses records, which are counted.
func quietLog() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

// recorded is the number of records of the log that has fewer.
func (c *fleetClient) recorded() (int64, error) {
	var least int64
	for i, log := range c.logs {
		n, err := log.recorded()
		if err != nil {
			return 0, err
		}
		if i == 0 || n < least {
			least = n
		}
	}
	return least, nil
}

func (c *fleetClient) close() error {
	return errors.Join(c.fleet.Stop(context.Background()), os.RemoveAll(c.dir))
}
