package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill/sandbox"
)

// attackSeconds is the variable that says how long the hostile skills go on.
const attackSeconds = "AGENTD_ATTACK_SECONDS"

// targets is what a hostile skill is told, which it would find out by itself.
type targets struct {
	Seconds       float64        `json:"seconds"`
	Socket        string         `json:"socket"`
	SiblingSocket string         `json:"siblingSocket"`
	SiblingURL    string         `json:"siblingURL"`
	EndedToken    string         `json:"endedToken"`
	ForeignResult string         `json:"foreignResult"`
	AgentD        string         `json:"agentd"`
	Fleet         string         `json:"fleet"`
	StateHome     string         `json:"stateHome"`
	RuntimeHome   string         `json:"runtimeHome"`
	Home          string         `json:"home"`
	Tmp           string         `json:"tmp"` // the temporary folder of everybody
	Sentinel      string         `json:"sentinel"`
	Abstract      string         `json:"abstract"`
	AgentSocket   string         `json:"agentSocket"`
	DockerSocket  string         `json:"dockerSocket"`
	DgramSocket   string         `json:"dgramSocket"`
	Broker        string         `json:"broker"`
	UDP           int            `json:"udp"`
	PIDs          map[string]int `json:"pids"`
	Secrets       []string       `json:"secrets"` // files
	Words         []string       `json:"words"`   // that are secret
	Folders       []string       `json:"folders"`
	Planted       []string       `json:"planted"` // files that somebody will run or believe
	Files         int            `json:"files"`
	Leftovers     int            `json:"leftovers"`
	Only          []string       `json:"only"` // the beginnings of the attempts to make; none for all
}

// An attackReport is what a hostile skill answers.
type attackReport struct {
	Rounds   int
	URL      string
	Token    string
	Tmp      string
	Attempts []struct{ Name, Outcome, Detail string }
}

// secretWord is in what belongs to agentd.
const secretWord = "kept-from-skills"

// A stronghold is a fleet of two agents, each an `agentd run` of its own with its
// defaults, with everything around them that a hostile skill might want.
type stronghold struct {
	targets
	dir         string
	env         []string
	clerk, desk *control.Client
	logs        map[string]*lines
	connected   atomic.Int32 // to sockets of others
	by          []string     // starts agentd run; none starts itself
	held        string       // how long the other skill sleeps: a number that names it among processes
}

const strongholdFiles = `
-- fleet.yaml --
version: 1
name: hold
agents: [{id: clerk, path: ./clerk}, {id: desk, path: ./desk}]
environments:
  default: {peersRef: ./rpc-peers.yaml, envFiles: [./clerk/secret.env]}
-- rpc-peers.yaml --
version: 1
peers:
  - agent: agent://clerk
    transports: [{kind: nats, servers: ["SERVER"], subjects: {requests: agents.clerk.requests}}]
  - agent: agent://desk
    transports: [{kind: nats, servers: ["SERVER"], subjects: {requests: agents.desk.requests}}]
-- clerk/agent.yaml --
name: clerk
skills:
  python: {process: {command: [python3, attack.py, MARK]}}
  go: {process: {command: [goattack, MARK]}}
  loose: {process: {command: [python3, attack.py, MARK]}, sandbox: off}
  echo: {process: {command: [cat]}}
  hold: {process: {command: [sh, -c, "exec sleep HELD"]}}
  whoami: {process: {command: [sh, -c, 'printf "{\"url\":\"%s\",\"token\":\"%s\"}" "$AGENTD_URL" "$AGENTD_CALL"']}}
-- clerk/capabilities.yaml --
version: 1
agent: agent://clerk
transports: [{kind: nats, servers: ["SERVER"], subjects: {requests: agents.clerk.requests}}]
capabilities: [{name: python, timeoutMs: 600000}, {name: go, timeoutMs: 600000}, {name: loose, timeoutMs: 600000}, {name: echo}, {name: hold, timeoutMs: 600000}, {name: whoami}]
-- desk/agent.yaml --
name: desk
skills: {whoami: {process: {command: [sh, -c, 'printf "{\"url\":\"%s\"}" "$AGENTD_URL"']}}}
-- desk/capabilities.yaml --
version: 1
agent: agent://desk
transports: [{kind: nats, servers: ["SERVER"], subjects: {requests: agents.desk.requests}}]
capabilities: [{name: whoami}]
-- clerk/secret.env --
TOKEN=kept-from-skills
`

func openStronghold(t *testing.T, by ...string) *stronghold {
	t.Helper()
	dir, err := os.MkdirTemp("", "agentd") // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	at := func(name string) string { return filepath.Join(dir, name) }
	broker := natstest.Run(t, "")
	h := &stronghold{dir: dir, logs: map[string]*lines{}, by: by, held: fmt.Sprintf("4711.%d%d", os.Getpid(), len(by)), targets: targets{
		Fleet: at("fleet"), StateHome: at("s"), RuntimeHome: at("r"), Home: at("home"), Tmp: os.TempDir(), Sentinel: at("sentinel"),
		Broker: strings.TrimPrefix(broker.URL(), "nats://"), Words: []string{secretWord}, Files: 2000, Leftovers: 24, Only: []string{},
	}}
	script, err := os.ReadFile(filepath.Join("testdata", "attack", "attack.py"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"fleet/attack.py": string(script), "home/.bashrc": "", "home/.profile": "", "home/.ssh/authorized_keys": "", "home/.config/systemd/user/a.service": "",
		"home/.ssh/id_ed25519": secretWord, "home/.aws/credentials": secretWord, "private/agent.creds": secretWord, "sentinel/file": "untouched",
		"home/go-build/cache": "", "home/go/bin/tool": "", "home/.cache/pip/x": "", "home/.local/bin/tool": "",
	}
	for _, file := range strings.Split(strings.NewReplacer("SERVER", broker.URL(), "MARK", dir, "HELD", h.held).Replace(strongholdFiles), "\n-- ")[1:] {
		name, content, _ := strings.Cut(file, " --\n")
		files["fleet/"+name] = content + "\n"
	}
	for name, content := range files {
		mode := fs.FileMode(0o644)
		if strings.HasSuffix(name, ".env") || strings.Contains(name, "private") || strings.Contains(name, ".ssh/") {
			mode = 0o600
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(at(name)), 0o755), os.WriteFile(at(name), []byte(content), mode)); err != nil {
			t.Fatal(err)
		}
	}
	h.listen(t)
	h.env = append(os.Environ(), "XDG_STATE_HOME="+h.StateHome, "XDG_RUNTIME_DIR="+h.RuntimeHome, "HOME="+h.Home,
		"GOCACHE="+at("home/go-build"), "SSH_AUTH_SOCK="+h.AgentSocket, "OPERATORS_TOKEN="+secretWord)
	if h.AgentD, err = exec.LookPath("agentd"); err != nil {
		t.Fatal(err)
	}
	f, err := fleet.Load(h.Fleet, fleet.LoadOptions{InspectOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{"XDG_STATE_HOME": h.StateHome, "XDG_RUNTIME_DIR": h.RuntimeHome}
	paths, err := daemon.DefaultPaths(f.Name, f.Root, func(name string) string { return vars[name] })
	if err != nil {
		t.Fatal(err)
	}
	h.Socket, h.SiblingSocket = paths.Socket("clerk"), paths.Socket("desk")
	h.clerk, h.desk = h.run(t, "clerk", h.Socket), h.run(t, "desk", h.SiblingSocket)
	if out, err := h.agentd("identity", "publish", "-C", h.Fleet); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// An agent that has read the keys takes no answer from one that has not.
	for _, agent := range []string{"clerk", "desk"} {
		eventually.Holds(t, agent+" has read the keys", func() bool { return strings.Contains(h.logs[agent].String(), `"msg":"reloaded"`) })
	}
	h.Secrets = []string{
		paths.AuditDB("clerk"), paths.AuditDB("clerk") + ".key", paths.AuditDB("desk") + ".key", paths.Idempotency("clerk"), paths.Identity("clerk"), paths.Identity("desk"),
		at("fleet/clerk/secret.env"), at("private/agent.creds"), at("home/.ssh/id_ed25519"), at("home/.aws/credentials"),
	}
	h.Folders = []string{filepath.Dir(paths.AuditDB("clerk")), h.StateHome, filepath.Dir(h.Socket), h.Home, at("private"), h.Sentinel}
	for _, name := range []string{
		"fleet/fleet.yaml", "fleet/rpc-peers.yaml", "fleet/identities.yaml", "fleet/clerk/agent.yaml", "fleet/clerk/capabilities.yaml", "fleet/attack.py", "fleet/new.py", "home/.bashrc", "home/.profile",
		"home/.ssh/authorized_keys", "home/.config/systemd/user/a.service", "home/.config/systemd/user/new.service", "home/.config/autostart/x.desktop",
		"home/go-build/cache", "home/go-build/new", "home/go/bin/tool", "home/.cache/pip/x", "home/.local/bin/tool", "home/.local/bin/python3", "home/.gitconfig",
	} {
		h.Planted = append(h.Planted, at(name))
	}
	h.Planted = append(h.Planted, h.AgentD)
	return h
}

// listen stands for other programs of the user: agents of keys, buses, containers.
func (h *stronghold) listen(t *testing.T) {
	t.Helper()
	accept := func(network, address string) net.Listener {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				h.connected.Add(1)
				_ = c.Close()
			}
		}()
		return l
	}
	h.AgentSocket, h.DockerSocket, h.DgramSocket = filepath.Join(h.dir, "agent"), filepath.Join(h.dir, "docker"), filepath.Join(h.dir, "dgram")
	h.Abstract = filepath.Base(h.dir)
	accept("unix", h.AgentSocket)
	accept("unix", h.DockerSocket)
	accept("unix", "@"+h.Abstract)
	for _, network := range []string{"unixgram", "udp"} {
		address := map[string]string{"unixgram": h.DgramSocket, "udp": "127.0.0.1:0"}[network]
		var c net.PacketConn
		var err error
		if network == "udp" {
			c, err = net.ListenPacket(network, address)
		} else {
			c, err = net.ListenUnixgram(network, &net.UnixAddr{Name: address, Net: network})
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if network == "udp" {
			h.UDP = c.LocalAddr().(*net.UDPAddr).Port
		}
	}
}

func (h *stronghold) run(t *testing.T, agent, socket string) *control.Client {
	t.Helper()
	client := control.NewClient(socket)
	t.Cleanup(client.Close)
	command := append(slices.Clone(h.by), "agentd", "run", "--fleet", h.Fleet, "--agent", agent, "--log-format", "json")
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = h.env
	h.logs[agent] = start(t, cmd)
	eventually.Holds(t, agent+" is ready", func() bool { return client.Ready(t.Context()) == nil })
	return client
}

// agentd runs a command of an operator.
func (h *stronghold) agentd(args ...string) (string, error) {
	cmd := exec.Command("agentd", args...)
	cmd.Env = h.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// call makes one call as an operator, through the desk.
func (h *stronghold) call(t *testing.T, to, capability string, payload any, timeout time.Duration) (*rpc.Result, error) {
	t.Helper()
	data, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	return h.desk.RequestAgent(t.Context(), rpc.Request{To: envelope.Address("agent://" + to), Capability: capability, Payload: data, Timeout: timeout})
}

// whoami returns what a skill of an agent is told of its call, which has ended then.
func (h *stronghold) whoami(t *testing.T, agent string) (url, token string) {
	t.Helper()
	client := h.desk
	if agent == "desk" {
		client = h.clerk
	}
	result, err := client.RequestAgent(t.Context(), rpc.Request{To: envelope.Address("agent://" + agent), Capability: "whoami", Payload: json.RawMessage(`{}`), Timeout: time.Minute})
	var answer struct{ URL, Token string }
	if err == nil && result.Status == rpc.StatusOK {
		err = json.Unmarshal(result.Response, &answer)
	} else if err == nil {
		err = result.Error
	}
	if err != nil {
		t.Fatal(err)
	}
	return answer.URL, answer.Token
}

// A skill that holds agentd's user and tries for a while what that user could do obtains
// nothing: the operator's API, keys, memory, files, other processes, the broker, or
// anything that lasts longer than its call.
func TestHostileSkills(t *testing.T) {
	t.Parallel()
	if missing := sandbox.Available().Missing(); len(missing) > 0 {
		t.Skipf("SKIPPED: on this machine nothing holds %s", strings.Join(missing, "; "))
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	// The two ways in which agentd starts a skill.
	t.Run("by a thread", func(t *testing.T) { t.Parallel(); hostileSkills(t, false) })
	t.Run("by the helper", func(t *testing.T) { t.Parallel(); hostileSkills(t, true, "untraced") })
}

func hostileSkills(t *testing.T, helper bool, by ...string) {
	h := openStronghold(t, by...)
	if got := strings.Contains(h.logs["clerk"].String(), "started by a helper process"); got != helper {
		t.Fatalf("the helper starts programs: %v\n%s", got, h.logs["clerk"])
	}
	h.Seconds = 1
	if text := os.Getenv(attackSeconds); text != "" {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("%s: %v", attackSeconds, err)
		}
		h.Seconds = seconds
		if seconds >= 30 {
			h.Files = 100_000
		}
	}
	stranger := exec.Command("sleep", "4712")
	stranger.Env = append(os.Environ(), "OPERATORS_TOKEN="+secretWord)
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stranger.Process.Kill(); _ = stranger.Wait() })
	held := make(chan struct{})
	go func() { // another call of the same agent, which the end of the test ends
		defer close(held)
		_, _ = h.call(t, "clerk", "hold", map[string]any{}, 10*time.Minute)
	}()
	h.PIDs = map[string]int{
		"daemon": h.logs["clerk"].process.Pid, "sibling": h.logs["desk"].process.Pid, "stranger": stranger.Process.Pid,
	}
	eventually.Holds(t, "another skill runs", func() bool {
		h.PIDs["otherSkill"] = findProcess("sleep\x00" + h.held)
		return h.PIDs["otherSkill"] != 0
	})
	h.SiblingURL, _ = h.whoami(t, "desk")
	_, h.EndedToken = h.whoami(t, "clerk")
	result, err := h.call(t, "clerk", "echo", map[string]any{}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	h.ForeignResult = result.CorrelationID
	if out, err := h.agentd("audit", "verify", "-C", h.Fleet); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { // where nobody has ended them
		for _, text := range h.marks() {
			for pid := findProcess(text); pid != 0; pid = findProcess(text) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	for _, language := range []string{"python", "go"} {
		t.Run(language, func(t *testing.T) { h.endure(t, language) })
	}
	// Without a sandbox, the operator's API is closed all the same, what is left is ended,
	// and agentd's own process is concealed from whoever is not root.
	t.Run("without a sandbox", func(t *testing.T) {
		h.Only = []string{"operator's socket", "agentd's own command"}
		if os.Geteuid() != 0 {
			for _, what := range []string{"/proc/<%s>/environ", "/proc/<%s>/mem", "/proc/<%s>/maps", "/proc/<%s>/fd", "a descriptor of <%s>", "the memory of <%s>", "ptrace of <%s>"} {
				h.Only = append(h.Only, fmt.Sprintf(what, "daemon"), fmt.Sprintf(what, "sibling"))
			}
		}
		h.endure(t, "loose")
	})
}

// endure lets one hostile skill run, and looks at what it has done.
func (h *stronghold) endure(t *testing.T, language string) {
	before := h.picture(t)
	connected := h.connected.Load()
	result, err := h.call(t, "clerk", language, h.targets, 10*time.Minute)
	if err != nil || result.Status != rpc.StatusOK {
		t.Fatalf("%v, %+v\n%s", err, result, h.logs["clerk"])
	}
	var report attackReport
	if err := json.Unmarshal(result.Response, &report); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, a := range report.Attempts {
		outcome := a.Outcome
		why, open := openTo(a.Name)
		switch {
		case outcome == "OBTAINED" && open:
			outcome = "open (" + why + ")"
		case outcome == "OBTAINED" || outcome == "broken" || outcome == "skipped" && !strings.HasPrefix(a.Name, "plant "):
			t.Errorf("%s: %s: %s", outcome, a.Name, a.Detail)
		}
		count[a.Outcome]++
		t.Logf("%-10s %s: %s", outcome, a.Name, a.Detail)
	}
	t.Logf("%d rounds of %d attempts: %v", report.Rounds, len(report.Attempts), count)

	// What the skill says of itself is one thing, what it has done another.
	if after := h.picture(t); after != before {
		t.Errorf("files were changed:\n%s\nbefore:\n%s", after, before)
	}
	if n := h.connected.Load() - connected; n != 0 {
		t.Errorf("%d connections to sockets of other programs", n)
	}
	eventually.Holds(t, "nothing of the call is left", func() bool {
		_, err := os.Lstat(report.Tmp)
		left := slices.ContainsFunc(h.marks(), func(text string) bool { return findProcess(text) != 0 })
		return !left && (errors.Is(err, fs.ErrNotExist) || report.Tmp == h.Tmp)
	})
	if out, err := h.agentd("audit", "verify", "-C", h.Fleet); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := h.agentd("audit", "query", "-C", h.Fleet, "--kind", "checkpoint", "--kind", "redaction", "--kind", "prune", "--kind", "approval", "-o", "jsonl"); err != nil || out != "" {
		t.Errorf("an operator's deeds: %v: %s", err, out)
	}
	if r, err := h.call(t, "clerk", "echo", map[string]any{"n": 1}, time.Minute); err != nil || r.Status != rpc.StatusOK {
		t.Errorf("the agent after the attack: %v, %+v", err, r)
	}
}

// openToSkills are the attempts that may succeed, by the beginning of their name, each with
// the reason that docs/security.md gives.
var openToSkills = map[string]string{
	"a UDP datagram to anywhere":        "closed by a declared permission without network:*",
	"the mode of ":                      "Landlock does not know modes and times of files; their content stays closed",
	"a file for another skill in /dev/": "programs need it, and the skills of one user share it",
}

func openTo(attempt string) (why string, open bool) {
	for prefix, why := range openToSkills {
		if strings.HasPrefix(attempt, prefix) {
			return why, true
		}
	}
	return "", false
}

// picture describes the files that no skill may change: names, modes and contents.
func (h *stronghold) picture(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, folder := range []string{h.Home, h.Sentinel, h.Fleet, filepath.Join(h.dir, "private")} {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			var sum [sha256.Size]byte
			if info.Mode().IsRegular() {
				text, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				sum = sha256.Sum256(text)
			}
			fmt.Fprintf(&b, "%s %s %x\n", info.Mode(), path, sum[:4])
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// marks are in the command lines of the hostile skills and of what they leave running.
func (h *stronghold) marks() []string {
	return []string{"attack.py\x00" + h.dir, "goattack\x00" + h.dir, "goattack " + h.dir}
}

// findProcess returns the id of a process that has a text in its command line, or 0.
func findProcess(text string) int {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range all {
		line, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(line, []byte(text)) {
			continue
		}
		if pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name))); pid != os.Getpid() {
			return pid
		}
	}
	return 0
}
