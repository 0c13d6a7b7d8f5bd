package doctor

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/skill/sandbox"
)

const (
	// syncs is how often a small file is written and synced, to see how long that takes.
	syncs = 8
	// slowSync is a time of one sync beyond which violations and refusals, whose records are
	// durable before their calls end, wait noticeably.
	slowSync = 50 * time.Millisecond
	// littleRoom is an amount of free space that a busy agent fills within hours, and noRoom
	// one that its next batches of records do not fit into.
	littleRoom = 1 << 30
	noRoom     = 16 << 20
)

// disk examines where the agent's state is.
func (p *patient) disk(ctx context.Context) {
	folder := filepath.Dir(daemon.AuditDB(p.member, p.paths))
	at := folder
	for { // a new agent has no folder yet: what matters is the disk
		_, err := os.Stat(at)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			p.say(checkDisk, fail, "let the agent's user enter and write it", "the folder of the audit log: %v", err)
			return
		}
		at = filepath.Dir(at)
	}
	if at != folder && p.agent != nil {
		p.say(checkDisk, fail, "put it back as it was; if it is lost, restore a backup and restart the agent", "%s is gone, with the audit log of the running agent", folder)
		return
	}
	if at != folder {
		p.say(checkDisk, skipped, "", "%s is not there yet: the agent makes it when it starts", folder)
		return
	}
	p.room(ctx, folder)
}

// room examines the folder of the state of an agent: room in it, and how long a sync takes.
func (p *patient) room(ctx context.Context, folder string) {
	free, known := freeBytes(folder)
	took, err := syncTime(ctx, folder)
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	switch {
	case known && free < noRoom:
		p.say(checkDisk, fail, "make room; agentd audit prune removes old records", "%s has %d MiB left: calls whose records do not fit fail", folder, free>>20)
	case full: // such as a quota
		p.say(checkDisk, fail, "make room; agentd audit prune removes old records", "%s cannot be written: %v", folder, err)
	case known && free < littleRoom:
		p.say(checkDisk, warn, "make room; agentd audit prune removes old records", "%s has %d MiB left", folder, free>>20)
	}
	switch {
	case full: // which is said
	case err != nil:
		p.say(checkDisk, fail, "let the agent's user write it", "%s cannot be written: %v", folder, err)
	case took > slowSync:
		p.say(checkDisk, warn, "put the state on a faster disk (XDG_STATE_HOME)", "%s: a sync takes %s, which each durable record waits for", folder, took.Round(100*time.Microsecond))
	case !known || free >= littleRoom:
		p.say(checkDisk, ok, "", "%s: %d GiB free, a sync takes %s", folder, free>>30, took.Round(10*time.Microsecond))
	}
}

// syncTime is the median time of writing and syncing a page in a folder.
func syncTime(ctx context.Context, folder string) (time.Duration, error) {
	file, err := os.CreateTemp(folder, ".doctor-*")
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	if err := os.Remove(file.Name()); err != nil { // it goes with the process, whatever ends it
		return 0, err
	}
	var times []time.Duration
	for range syncs {
		start := time.Now()
		if _, err := file.Write(make([]byte, 4096)); err != nil {
			return 0, err
		}
		if err := file.Sync(); err != nil {
			return 0, err
		}
		times = append(times, time.Since(start))
		if ctx.Err() != nil {
			break
		}
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// ports examines the addresses where the agent's file has it serve others: a running agent
// must answer there, and for another one they must be free.
func (p *patient) ports(ctx context.Context) {
	p.port(ctx, "mcp.listen", p.member.Agent.MCP.Listen, func(s *control.Status) []string { return s.MCPServers })
	p.port(ctx, "control.listen", p.member.Agent.Control.Listen, func(s *control.Status) []string { return s.ControlServers })
	p.port(ctx, "monitoring.listen", p.member.Agent.Monitoring.Listen, func(s *control.Status) []string {
		return slices.DeleteFunc([]string{s.Monitoring}, func(url string) bool { return url == "" })
	})
}

// port examines one address. urls are where a running agent says that it serves it.
func (p *patient) port(ctx context.Context, key, address string, urls func(*control.Status) []string) {
	switch {
	case address == "":
		return
	case p.agent == nil:
		p.free(ctx, key, address)
		return
	case p.status == nil:
		return // it does not say
	}
	at := urls(p.status)
	if len(at) == 0 {
		p.say(checkPorts, fail, "look into the log of the agent", "%s: the agent does not serve %s", key, address)
	}
	for _, text := range at {
		u, err := url.Parse(text)
		if err == nil {
			var conn net.Conn
			if conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", u.Host); err == nil {
				_ = conn.Close()
			}
		}
		if err != nil {
			p.say(checkPorts, fail, "look into the log of the agent", "%s: nobody answers at %s: %v", key, text, err)
			continue
		}
		p.say(checkPorts, ok, "", "%s: answers at %s", key, u.Host)
	}
}

// free tries to listen where the agent will.
func (p *patient) free(ctx context.Context, key, address string) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		p.say(checkPorts, fail, "end what listens there, or choose another address", "%s: the agent will not be able to serve %s: %v", key, address, err)
		return
	}
	_ = l.Close()
	p.say(checkPorts, ok, "", "%s: %s is free", key, address)
}

// sandbox says what this host can hold the programs of skills to.
func (x *examination) sandbox(ctx context.Context, members []*fleet.Member) {
	if !slices.ContainsFunc(members, func(m *fleet.Member) bool { return len(m.Agent.Programs()) > 0 }) {
		x.add("", checkSandbox, skipped, "", "no skill is a program")
		return
	}
	layers := sandbox.Available()
	missing := layers.Missing()
	for _, what := range missing {
		x.add("", checkSandbox, warn, "use a newer kernel, or one with Landlock enabled (lsm=…,landlock)", "this kernel does not hold skills to their rights to %s", what)
	}
	if !layers.Marks {
		return
	}
	if _, err := sandbox.OpenThreads(ctx); err != nil {
		x.add("", checkSandbox, warn, "let the container trace its own processes (SYS_PTRACE is not needed; a seccomp profile may forbid ptrace)",
			"programs are started by a helper process, which adds some milliseconds to each call: %v", err)
		return
	}
	if len(missing) == 0 {
		x.add("", checkSandbox, ok, "", "this kernel separates skills from their operator: Landlock %d, seccomp, marks", layers.Landlock)
	}
}
