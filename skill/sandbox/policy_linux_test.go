package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/agentd/agentd/skill/sandbox"
)

// What a policy names is granted, and no more.
func TestPolicies(t *testing.T) {
	available(t)
	for _, u := range users(t) {
		t.Run(u.name, u.policies)
	}
}

func (u user) policies(t *testing.T) {
	dir, data := u.folder(t), u.folder(t)
	u.file(t, filepath.Join(data, "in"), "in\n", 0o600)
	if err := os.Mkdir(filepath.Join(dir, "other"), 0o755); err != nil {
		t.Fatal(err)
	}
	u.own(t, filepath.Join(dir, "other"))
	u.file(t, filepath.Join(dir, "other", "agent.yaml"), "theirs\n", 0o600)
	u.file(t, filepath.Join(dir, "other", "shared"), "shared\n", 0o600)
	u.file(t, filepath.Join(dir, "own"), "own\n", 0o600)
	links := u.folder(t)
	for name, target := range map[string]string{"file": filepath.Join(data, "in"), "folder": data} {
		if err := os.Symlink(target, filepath.Join(links, name)); err != nil {
			t.Fatal(err)
		}
	}
	required := []sandbox.Path{{Name: data, Required: true}}
	python := "/usr/bin/python3"
	for _, test := range []struct {
		name    string
		change  func(*sandbox.Policy)
		command []string
		want    string // of the output; or with a !, that it fails
	}{
		{"reads what is granted", func(p *sandbox.Policy) { p.Read = append(p.Read, required...) }, []string{"cat", filepath.Join(data, "in")}, "in"},
		{"writes nothing with it", func(p *sandbox.Policy) { p.Read = append(p.Read, required...) }, []string{"touch", filepath.Join(data, "out")}, "!Permission denied"},
		{"writes what is granted", func(p *sandbox.Policy) { p.Write = append(p.Write, required...) }, []string{"sh", "-c", "echo x >" + data + "/out && cat " + data + "/out"}, "x"},
		{"lists around a hidden folder", func(p *sandbox.Policy) { p.Hidden = []string{filepath.Join(dir, "other")} }, []string{"sh", "-c", "ls; cat own"}, "other\nown\nown"},
		{"reads no hidden folder", func(p *sandbox.Policy) { p.Hidden = []string{filepath.Join(dir, "other")} }, []string{"cat", "other/shared"}, "!Permission denied"},
		{"reads beside a hidden file", func(p *sandbox.Policy) { p.Hidden = []string{filepath.Join(dir, "other", "agent.yaml")} }, []string{"cat", "other/shared"}, "shared"},
		{"reads no hidden file", func(p *sandbox.Policy) { p.Hidden = []string{filepath.Join(dir, "other", "agent.yaml")} }, []string{"cat", "other/agent.yaml"}, "!Permission denied"},
		{"reads nothing apart", func(p *sandbox.Policy) { p.Apart = []string{filepath.Join(dir, "other")} }, []string{"cat", "other/shared"}, "!Permission denied"},
		{"reads what is apart and named", func(p *sandbox.Policy) {
			p.Apart = []string{filepath.Join(dir, "other")}
			p.Read = append(p.Read, sandbox.Path{Name: filepath.Join(dir, "other", "shared"), Required: true})
		}, []string{"cat", "other/shared"}, "shared"},
		{"follows no link that has taken the place of a grant", func(p *sandbox.Policy) {
			p.Read = append(p.Read, sandbox.Path{Name: filepath.Join(links, "file"), Required: true, Fixed: true})
		}, []string{"cat", filepath.Join(links, "file")}, "!symbolic link"},
		{"nor of a folder above it", func(p *sandbox.Policy) {
			p.Read = append(p.Read, sandbox.Path{Name: filepath.Join(links, "folder", "in"), Required: true, Fixed: true})
		}, []string{"cat", filepath.Join(data, "in")}, "!symbolic link"},
		{"nor of the skill's folder", func(p *sandbox.Policy) {
			p.Read = append(p.Read, sandbox.Default(filepath.Join(links, "folder")).Read...)
		}, []string{"cat", filepath.Join(data, "in")}, "!Permission denied"},
		{"limits", func(p *sandbox.Policy) {
			p.Limits = sandbox.Limits{FileBytes: 4096, OpenFiles: 64, CPUSeconds: 9, MemoryBytes: 1 << 30}
		}, []string{"sh", "-c", "ulimit -n; ulimit -t; ulimit -d; ulimit -c"}, "64\n9\n1048576\n0"},
		{"a program alone", func(p *sandbox.Policy) { p.Execute = false }, []string{"cat", "own"}, "own"},
		{"a script alone", func(p *sandbox.Policy) { p.Execute = false }, []string{"sh", "-c", "echo $((1+1))"}, "2"},
		{"no other program", func(p *sandbox.Policy) { p.Execute = false }, []string{"sh", "-c", "ls"}, "!Permission denied"},
		{"no sockets", func(p *sandbox.Policy) { p.Network = false }, []string{python, "-c", "import socket; socket.socket()"}, "!PermissionError"},
		{"no datagrams with a face", func(p *sandbox.Policy) { p.Network, p.Face = false, 9 }, []string{python, "-c", "import socket; socket.socket(); socket.socket(type=socket.SOCK_DGRAM)"}, "!PermissionError"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if strings.HasPrefix(test.command[0], "/") {
				u.lookPath(t, test.command[0])
			}
			p := sandbox.Default(dir)
			test.change(&p)
			out, err := u.run(t, p, nil, dir, test.command...)
			want, fails := strings.CutPrefix(test.want, "!")
			if (err != nil) != fails || !fails && strings.TrimSpace(out) != want || !strings.Contains(out, want) && !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// A granted port can be reached, and so can the skill's API without a network.
func TestPorts(t *testing.T) {
	available(t)
	for _, u := range users(t) {
		t.Run(u.name, u.ports)
	}
}

func (u user) ports(t *testing.T) {
	dir := u.folder(t)
	w := prepare(t, u, dir)
	u.lookPath(t, "/usr/bin/python3")
	connect := []string{"/usr/bin/python3", "-c", "import socket; socket.create_connection(('127.0.0.1', " + strconv.Itoa(w.Port) + ")); print('ok')"}
	for name, change := range map[string]func(*sandbox.Policy){
		"connect": func(p *sandbox.Policy) { p.Connect = append(p.Connect, uint16(w.Port)) },
		"face":    func(p *sandbox.Policy) { p.Network, p.Face = false, uint16(w.Port) },
		"none":    func(*sandbox.Policy) {},
	} {
		p := sandbox.Default(dir)
		change(&p)
		if out, err := u.run(t, p, nil, dir, connect...); (err == nil) != (name != "none") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// What cannot be applied fails the call, by name; the program does not run.
func TestFailures(t *testing.T) {
	available(t)
	for _, u := range users(t) {
		t.Run(u.name, u.failures)
	}
}

func (u user) failures(t *testing.T) {
	dir := u.folder(t)
	for name, test := range map[string]struct {
		change  func(*sandbox.Policy)
		command string
		step    string
		want    string
	}{
		"missing": {func(p *sandbox.Policy) {
			p.Read = append(p.Read, sandbox.Path{Name: "/no/such/folder", Required: true})
		}, "true", "landlock", "/no/such/folder"},
		"hidden": {func(p *sandbox.Policy) {
			p.Hidden, p.Write = []string{"/etc"}, []sandbox.Path{{Name: "/etc/ssl", Required: true}}
		}, "true", "landlock", "/etc/ssl holds what no skill may read"},
		"no program":     {func(*sandbox.Policy) {}, "/no/such/program", "exec", "/no/such/program"},
		"default passes": {func(p *sandbox.Policy) { p.Read = append(p.Read, sandbox.Path{Name: "/no/such/folder"}) }, "true", "", ""},
	} {
		p := sandbox.Default(dir)
		test.change(&p)
		_, err := u.run(t, p, nil, dir, test.command)
		var failure *sandbox.Error
		if (test.step == "") != (err == nil) || err != nil && (!errors.As(err, &failure) || failure.Step != test.step || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v", name, err)
		}
		if test.step == "exec" && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v is not ErrNotExist", name, err)
		}
	}
}

// A descriptor that agentd has open does not reach the program.
func TestNoDescriptorIsInherited(t *testing.T) {
	available(t)
	file, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, u := range users(t) {
		// As one that agentd has been started with.
		if _, err := unix.FcntlInt(file.Fd(), unix.F_SETFD, 0); err != nil {
			t.Fatal(err)
		}
		out, err := u.run(t, sandbox.Default("/"), nil, "/", "sh", "-c", "for fd in /proc/$$/fd/*; do case ${fd##*/} in 0|1|2) ;; *) test -e $fd && echo $fd; esac; done; true")
		if err != nil || out != "" {
			t.Errorf("%s: open: %s, %v", u.name, out, err)
		}
	}
}

// The variables of a program do not reach the helper, in which they would run code of the
// skill before anything confines it.
func TestVariablesAreTheProgramsAlone(t *testing.T) {
	for _, u := range users(t) {
		t.Run(u.name, u.variables)
	}
}

func (u user) variables(t *testing.T) {
	dir := u.folder(t)
	env := []string{"GODEBUG=inittrace=1", "LD_PRELOAD=" + filepath.Join(dir, "absent.so"), "EMPTY=", "TWICE=1", "TWICE=2"}
	out, err := u.run(t, sandbox.Default(dir), env, dir, "/bin/sh", "-c", `echo "$GODEBUG [${EMPTY-unset}] $TWICE"; ! env | grep confined:`)
	if err != nil || !strings.Contains(out, "inittrace=1 [] 2\n") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = u.run(t, sandbox.Default(dir), env, dir, "/bin/true")
	// The loader complains once, for the program.
	if err != nil || strings.Contains(out, "init runtime") || strings.Count(out, "absent.so") > 1 {
		t.Errorf("the helper has them, too: %v\n%s", err, out)
	}
}
