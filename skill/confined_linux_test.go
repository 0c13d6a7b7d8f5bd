package skill_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/procmark"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill"
	"github.com/agentd/agentd/skill/sandbox"
)

// byThread has threads start the programs of a sandbox, or skips the test.
func byThread(tb testing.TB, s *sandbox.Sandbox) {
	tb.Helper()
	var err error
	if s.Threads, err = sandbox.OpenThreads(tb.Context()); err != nil {
		tb.Skipf("this machine does not let a thread start a confined program: %v", err)
	}
}

// confine gives a process a sandbox with the default policy.
func confine(tb testing.TB, p *skill.Process) *sandbox.Sandbox {
	tb.Helper()
	if missing := sandbox.Available().Missing(); len(missing) > 0 {
		tb.Skipf("this kernel cannot hold a program to its policy: %v", missing)
	}
	folders, err := sandbox.OpenFolders(filepath.Join(tb.TempDir(), "calls"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(folders.Close)
	p.Sandbox = &sandbox.Sandbox{Policy: sandbox.Default(p.Dir), Marks: procmark.NewSource(), Folders: folders}
	return p.Sandbox
}

// The contract of a process holds for one that is confined: the same tests.
func TestConfinedProcess(t *testing.T) {
	t.Run("by the helper", func(t *testing.T) { confinedProcess(t, func(testing.TB, *sandbox.Sandbox) {}) })
	t.Run("by a thread", func(t *testing.T) { confinedProcess(t, byThread) })
}

func confinedProcess(t *testing.T, way func(testing.TB, *sandbox.Sandbox)) {
	p, _ := program("echo")
	way(t, confine(t, p))
	if out, err := p.Handle(t.Context(), invocation(`{"a":1}`)); err != nil || string(out) != `{"a":1}` {
		t.Errorf("got %s, %v", out, err)
	}
	for name, want := range map[string]string{
		"tempfail": "status 75", "says": "no such pull request", "killed": "by a signal (killed)", "flood": "1048576 bytes", "exit3": "status 3",
	} {
		p, log := program(name)
		way(t, confine(t, p))
		_, err := p.Handle(t.Context(), invocation(`{}`))
		var public *rpc.SkillError
		if !errors.As(err, &public) || !strings.Contains(public.Message, want) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "exit3" && !strings.Contains(log.String(), "hunter2") {
			t.Errorf("standard error is not in the log: %s", log)
		}
	}
	p = &skill.Process{Command: []string{"/no/such/program"}}
	way(t, confine(t, p))
	_, err := p.Handle(t.Context(), invocation(`{}`))
	var public *rpc.SkillError
	if !errors.As(err, &public) || public.Message != "the skill could not be started" || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that does not exist: %v", err)
	}
}

// The temporary folder of a call is the program's home, is its own, and goes with the call.
func TestTemporaryFolderOfACall(t *testing.T) {
	p := &skill.Process{Command: []string{"sh", "-c", `echo x >"$TMPDIR/f"; test -O "$HOME" && printf '"%s"' "$HOME"`}}
	confine(t, p)
	var homes []string
	for range 2 {
		out, err := p.Handle(t.Context(), invocation(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		var home string
		if err := json.Unmarshal(out, &home); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(home); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", home, err)
		}
		homes = append(homes, home)
	}
	if homes[0] == homes[1] {
		t.Errorf("two calls share %s", homes[0])
	}
	p.Command = []string{"sh", "-c", `printf '"%s"' "$HOME"`}
	p.Env = []string{"HOME=/etc"}
	if out, err := p.Handle(t.Context(), invocation(`{}`)); err != nil || string(out) != `"/etc"` {
		t.Errorf("env does not set HOME: %s, %v", out, err)
	}
}

// The log of a failed skill names the key that may help.
func TestHints(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ script, want string }{
		{"cat " + secret, "sandbox.read and sandbox.write in agent.yaml list what it may use besides its own folder, and that is not " + secret},
		{"echo x >/etc/agentd-test", "sandbox.write in agent.yaml lists what it may change besides its temporary folder, and that is not /etc/agentd-test"},
		{"echo 'dial tcp 10.0.0.1:5432: connect: permission denied' >&2; exit 1", "sandbox.connect in agent.yaml lists more TCP ports"},
		{"echo 'listen tcp :80: bind: permission denied' >&2; exit 1", "sandbox.listen"},
		{"echo 'socket: address family not supported by protocol' >&2; exit 1", "$AGENTD_URL"},
		{"echo 'no such pull request' >&2; exit 1", ""},
	} {
		p := &skill.Process{Command: []string{"sh", "-c", test.script}, Dir: "/"}
		s := confine(t, p)
		s.Policy.Read = sandbox.Default("/usr").Read
		_, err := p.Handle(t.Context(), invocation(`{}`))
		if err == nil || !strings.Contains(err.Error(), test.want) || test.want == "" && strings.Contains(err.Error(), "sandbox") {
			t.Errorf("%s: %v", test.script, err)
		}
		var public *rpc.SkillError
		if errors.As(err, &public) && strings.Contains(public.Message, "sandbox") {
			t.Errorf("the caller learns of it: %s", public.Message)
		}
	}
}

// A policy of a capability's own goes before that of the skill.
func TestPolicyOfACapability(t *testing.T) {
	p := &skill.Process{Command: []string{"sh", "-c", "ls / >/dev/null && echo 1"}, Dir: "/"}
	s := confine(t, p)
	s.ByCapability = map[string]sandbox.Policy{"review-pr": {Read: s.Policy.Read, Write: s.Policy.Write}}
	if out, err := p.Handle(t.Context(), invocation(`{}`)); err == nil {
		t.Errorf("a program was executed: %s", out)
	}
	other := invocation(`{}`)
	other.Capability = "other"
	if out, err := p.Handle(t.Context(), other); err != nil {
		t.Errorf("got %s, %v", out, err)
	}
}

// `go run` is built outside of the sandbox, once for calls that arrive together, again when a
// file has changed, and its arguments and exit status are the program's.
func TestGoRunIsBuilt(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := func(answer string) string {
		return "package main\nimport \"os\"\nfunc main() { if len(os.Args) < 2 { os.Exit(75) }; println(\"ran\"); os.Stdout.WriteString(`" + answer + "`) }\n"
	}
	write("go.mod", "module example.com/skill\n\ngo 1.24\n")
	write("main.go", program(`"first"`))
	p := &skill.Process{Command: []string{"go", "run", ".", "argument"}, Dir: dir, Builds: skill.NewBuilds(filepath.Join(t.TempDir(), "build"))}
	confine(t, p)
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			if out, err := p.Handle(t.Context(), invocation(`{}`)); err != nil || string(out) != `"first"` {
				t.Errorf("got %s, %v", out, err)
			}
		})
	}
	calls.Wait()
	write("main.go", program(`"second"`))
	if out, err := p.Handle(t.Context(), invocation(`{}`)); err != nil || string(out) != `"second"` {
		t.Errorf("after a change: %s, %v", out, err)
	}
	write("main.go", "package main\nfunc main() { undefined() }\n")
	var public *rpc.SkillError
	if _, err := p.Handle(t.Context(), invocation(`{}`)); !errors.As(err, &public) || public.Message != "the skill could not be built" || !strings.Contains(err.Error(), "main.go:2:15: undefined: undefined") {
		t.Errorf("a program that cannot be built: %v", err)
	}
	write("main.go", program(`null`))
	p.Command = p.Command[:3]
	if _, err := p.Handle(t.Context(), invocation(`{}`)); !errors.As(err, &public) || !public.Retryable {
		t.Errorf("exit status 75: %v", err)
	}
}

// BenchmarkProcess measures what the sandbox costs a call.
func BenchmarkProcess(b *testing.B) {
	agentd := buildAgentd(b)
	for _, command := range [][]string{{"true"}, {"/usr/bin/python3", "-c", "print(1)"}} {
		for _, way := range []string{"unconfined", "by the helper", "by a thread"} {
			b.Run(filepath.Base(command[0])+"/"+way, func(b *testing.B) {
				p := &skill.Process{Command: command, Dir: b.TempDir()}
				switch way {
				case "by the helper":
					confine(b, p).Helper = agentd
				case "by a thread":
					byThread(b, confine(b, p))
				}
				var took []time.Duration
				for b.Loop() {
					begun := time.Now()
					_, err := p.Handle(b.Context(), invocation(`{}`))
					if err != nil && !strings.Contains(err.Error(), "wrote no answer") {
						b.Fatal(err)
					}
					took = append(took, time.Since(begun))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[0].Microseconds()), "least-µs")
				b.ReportMetric(float64(took[len(took)/2].Microseconds()), "median-µs")
			})
		}
	}
}

// buildAgentd builds the program that is the helper where agentd runs: how long it takes to
// start counts.
func buildAgentd(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "agentd")
	if out, err := exec.Command("go", "build", "-o", path, "../cmd/agentd").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return path
}
