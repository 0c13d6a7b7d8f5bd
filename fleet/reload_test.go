package fleet_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/fleet"
)

// rewrite writes a file such that its size and times stay as they were.
func rewrite(t *testing.T, path, before, after string) {
	t.Helper()
	if len(before) != len(after) {
		t.Fatalf("%q and %q have other sizes", before, after)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), before) {
		t.Fatalf("%s has no %q: %v", path, before, err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), before, after)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
}

func loaded(t *testing.T, root string, opts fleet.LoadOptions) *fleet.Fleet {
	t.Helper()
	f, err := fleet.Load(root, opts)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func reloaded(t *testing.T, f *fleet.Fleet) *fleet.Fleet {
	t.Helper()
	f, err := f.Reload()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A reload takes what has not changed from before, and every change is seen, also one that
// leaves a file's size and times as they were.
func TestReloadReadsWhatChanged(t *testing.T) {
	root := largeFleet(t, 6)
	if err := os.WriteFile(filepath.Join(root, "agent-5", "agent.yaml"), []byte("name: agent-5\nskills: {answer: {process: {command: [\"true\"]}}}\nlimits: {maxViolations: 3}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := loaded(t, root, fleet.LoadOptions{})
	rewrite(t, filepath.Join(root, "agent-1", "capabilities.yaml"), "minLength: 1", "minLength: 7")
	rewrite(t, filepath.Join(root, "agent-2", "agent.yaml"), `"true"`, `"echo"`)
	second := reloaded(t, first)
	for i, before := range first.Members {
		now := second.Members[i]
		if same := before.Capabilities == now.Capabilities; same != (i != 1) {
			t.Errorf("%s: the contract is taken from before: %t", now.ID, same)
		}
		if same := before.Agent == now.Agent; same != (i != 2) {
			t.Errorf("%s: agent.yaml is taken from before: %t", now.ID, same)
		}
		for j, p := range now.Peers {
			if p == before.Peers[j] {
				t.Fatalf("%s has a peer of the fleet before", now.ID)
			}
			if own := second.Members[j].Capabilities; i != 5 && j != 5 && p.Document != own {
				t.Errorf("%s: %s has not the contract that it has now", now.ID, p.Address)
			}
			if same := p.Document == before.Peers[j].Document; same != (j != 1) {
				t.Errorf("%s: the contract of %s is taken from before: %t", now.ID, p.Address, same)
			}
		}
	}
	if violations := second.Members[1].Capabilities.Capabilities[0].Input.Check([]byte(`{"question":"short"}`)).Violations; len(violations) != 1 {
		t.Errorf("the new contract finds %v", violations)
	}
	if got := second.Members[2].Agent.Skills[0].Process.Command; got[0] != "echo" {
		t.Errorf("the new command is %q", got)
	}
}

// Whatever changes, a reload returns what a load returns.
func TestReloadIsLoad(t *testing.T) {
	root := largeFleet(t, 3)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pins := `version: 1
peers: [{agent: agent://agent-2, transports: [{kind: memory, topics: {requests: a}}], capabilities: ../agent-2/capabilities.yaml}]`
	f := loaded(t, root, plugged())
	for _, change := range []func(){
		func() {},
		func() { write("agent-0/rpc-peers.yaml", pins) },
		func() {
			rewrite(t, filepath.Join(root, "agent-2", "capabilities.yaml"), "minLength: 1", "minLength: 2")
		},
		func() {
			write("agent-1/agent.yaml", "name: agent-1\nvalidator: gojsonschema\nskills: {answer: {process: {command: [\"true\"]}}}\n")
		},
		func() {
			rewrite(t, filepath.Join(root, "agent-0", "capabilities.yaml"), "minLength: 1", "minLength: 2")
		},
		func() {
			rewrite(t, filepath.Join(root, "rpc-peers.yaml"), "agents.agent-1.requests", "agents.agent-7.requests")
		},
		func() { write("agent-2/rpc-peers.yaml", "version: 1\npeers: []\n") },
		func() { write("agent-0/rpc-peers.yaml", "version: 1\npeers: []\n") },
		func() {
			write("agent-2/capabilities.yml", "version: 1\n")
			write("identities.yaml", "version: 1\nidentities: []\n")
		},
		func() { rewrite(t, filepath.Join(root, "fleet.yaml"), "name: large", "name: grand") },
	} {
		change()
		f = reloaded(t, f)
		fresh := loaded(t, root, plugged())
		if got, want := f.Capabilities(), fresh.Capabilities(); !reflect.DeepEqual(got, want) || f.Name != fresh.Name {
			t.Errorf("got %+v, want %+v", got, want)
		}
		for i, m := range f.Members {
			other := fresh.Members[i]
			if !reflect.DeepEqual(m.Agent, other.Agent) || m.PeersFile != other.PeersFile || len(m.Peers) != len(other.Peers) {
				t.Errorf("%s is not what a load returns", m.ID)
				continue
			}
			for j, p := range m.Peers {
				q := other.Peers[j]
				if p.Address != q.Address || p.Pinned != q.Pinned || p.Document.Digest() != q.Document.Digest() || !reflect.DeepEqual(p.Transports, q.Transports) {
					t.Errorf("%s: the peer %s is not what a load returns", m.ID, p.Address)
				}
			}
		}
	}
}

// What is judged by more than a file's own text is judged anew: links, the files of keys,
// pins that are gone. The faults are those of a load.
func TestReloadAsksTheDiskAgain(t *testing.T) {
	for _, test := range []struct{ name, agent, says string }{
		{"link", "skills: {answer: {process: {command: [\"true\"], dir: ./agent-0/code}}}", "the path leads out of the fleet's root"},
		{"key", "skills: {answer: {process: {command: [\"true\"]}}}\nsecurity: {approvers: [{name: ann, keyFile: ./agent-0/ann.pub}]}", "ssh-ed25519, ecdsa"},
		{"pin", "skills: {answer: {process: {command: [\"true\"]}}}", "no capabilities config at"},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := largeFleet(t, 2)
			at := func(name string) string { return filepath.Join(root, "agent-0", name) }
			write := func(name, text string) {
				t.Helper()
				if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("agent.yaml", "name: agent-0\n"+test.agent+"\n")
			write("ann.pub", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f ann\n")
			write("rpc-peers.yaml", "version: 1\npeers: [{agent: agent://agent-1, transports: [{kind: memory, topics: {requests: a}}], capabilities: ./pin.yaml}]\n")
			pin, err := os.ReadFile(filepath.Join(root, "agent-1", "capabilities.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			write("pin.yaml", string(pin))
			if err := os.Mkdir(at("code"), 0o700); err != nil {
				t.Fatal(err)
			}
			f := reloaded(t, loaded(t, root, fleet.LoadOptions{}))
			switch test.name {
			case "link":
				err = errors.Join(os.Remove(at("code")), os.Symlink(t.TempDir(), at("code")))
			case "key":
				write("ann.pub", "no key\n")
			case "pin":
				err = os.Remove(at("pin.yaml"))
			}
			if err != nil {
				t.Fatal(err)
			}
			_, got := f.Reload()
			_, want := fleet.Load(root, fleet.LoadOptions{})
			if want == nil || got == nil || got.Error() != want.Error() || !strings.Contains(got.Error(), test.says) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// Nothing keeps a fleet, nor what only it has, once a reload has replaced it.
func TestReloadKeepsNothing(t *testing.T) {
	root := largeFleet(t, 3)
	f := loaded(t, root, fleet.LoadOptions{})
	gone := make(chan struct{}, 10)
	follow := func(m *fleet.Member) {
		runtime.AddCleanup(m.Capabilities, func(c chan struct{}) { c <- struct{}{} }, gone)
	}
	follow(f.Members[1])
	unchanged := f.Members[0].Capabilities
	for i, text := range []string{"minLength: 2", "minLength: 3", "minLength: 4"} {
		rewrite(t, filepath.Join(root, "agent-1", "capabilities.yaml"), "minLength: "+string(rune('1'+i)), text)
		f = reloaded(t, f)
		follow(f.Members[1])
	}
	for range 3 {
		waitCollected(t, gone)
	}
	if f.Members[0].Capabilities != unchanged || len(gone) > 0 {
		t.Errorf("what is in use is replaced, or collected %d times", len(gone))
	}
	runtime.KeepAlive(f)
}

// waitCollected collects garbage until a cleanup has run.
func waitCollected(t *testing.T, gone <-chan struct{}) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		runtime.GC()
		select {
		case <-gone:
			return
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatal("a contract that was replaced is still there")
		}
	}
}

// BenchmarkReload is the reload of a fleet in which one file has changed, as a share of a
// load.
func BenchmarkReload(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			root := largeFleet(b, n)
			path := filepath.Join(root, "agent-7", "capabilities.yaml")
			text, err := os.ReadFile(path)
			if err != nil {
				b.Fatal(err)
			}
			begun := time.Now()
			f, err := fleet.Load(root, fleet.LoadOptions{})
			if err != nil {
				b.Fatal(err)
			}
			load := time.Since(begun)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				changed := strings.ReplaceAll(string(text), "minLength: 1", "minLength: "+strconv.Itoa(i+2))
				if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
					b.Fatal(err)
				}
				if f, err = f.Reload(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(load), "of-a-load")
		})
	}
}
