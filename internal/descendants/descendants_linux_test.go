package descendants_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/agentd/agentd/internal/descendants"
	"github.com/agentd/agentd/internal/procmark"
	"github.com/agentd/agentd/internal/proctree"
)

// TestMain makes this program that of a call: it marks itself and becomes a shell.
func TestMain(m *testing.M) {
	if script := os.Getenv("TEST_SCRIPT"); script != "" {
		mark, _ := strconv.ParseUint(os.Getenv("TEST_MARK"), 10, 64)
		var err error
		if mark != 0 {
			err = procmark.Set(procmark.Mark(mark))
		}
		if err == nil {
			err = syscall.Exec("/bin/sh", []string{"sh", "-c", script}, []string{"PATH=" + os.Getenv("PATH")})
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// A program is that of a call, which writes lines.
type program struct {
	*exec.Cmd
	out *bufio.Reader
}

// start starts a script as the program of a call.
func start(t testing.TB, call *descendants.Call, mark procmark.Mark, script string) program {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TEST_SCRIPT=" + script, "TEST_MARK=" + strconv.FormatUint(uint64(mark), 10)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if call != nil {
		call.Started(cmd.Process.Pid)
	}
	return program{cmd, bufio.NewReader(out)}
}

// pid reads a line with the process id of a descendant.
func (p program) pid(t testing.TB) int {
	t.Helper()
	line, err := p.out.ReadString('\n')
	pid, aerr := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || aerr != nil {
		t.Fatalf("the program wrote %q, %v", line, err)
	}
	return pid
}

// wait waits for the program alone, and not for the ends of its pipes.
func (p program) wait(t testing.TB) {
	t.Helper()
	if _, err := p.Process.Wait(); err != nil {
		t.Fatal(err)
	}
}

// gone reports whether a process has ended and been waited for.
func gone(pid int) bool {
	_, err := proctree.Read(pid)
	return err != nil
}

func family(t testing.TB, adopt bool) *descendants.Family {
	t.Helper()
	f, err := descendants.NewFamily(adopt)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// What each of them leaves running writes its process id and waits for ever.
const forever = `sh -c 'echo $$; exec sleep 1000'`

// Whatever a program does to leave something behind, nothing is left when its call has
// ended.
func TestNothingOutlivesACall(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		left   int
	}{
		"in the background":   {forever + ` & read x <&3`, 1},
		"nohup":               {`nohup ` + forever + ` 2>/dev/null & read x <&3`, 1},
		"a session":           {`setsid ` + forever + ` & read x <&3`, 1},
		"forked twice":        {`(setsid ` + forever + ` & ) ; read x <&3`, 1},
		"forked three times":  {`( ( (setsid ` + forever + ` & ) & ) & ) ; read x <&3`, 1},
		"sessions in a row":   {`setsid sh -c 'echo $$; setsid sh -c "echo \$\$; exec sleep 1000" & exec sleep 1000' & read x <&3`, 2},
		"no environment":      {`setsid env -i /bin/sh -c 'echo $$; exec sleep 1000' & read x <&3`, 1},
		"ignores signals":     {`setsid sh -c 'trap "" HUP INT QUIT TERM TSTP CONT; echo $$; while :; do sleep 1000; done' & read x <&3`, 1},
		"its mark is lower":   {`setsid sh -c 'prlimit --pid $$ --locks=12345:12345; echo $$; exec sleep 1000' & read x <&3`, 1},
		"stopped":             {`setsid sh -c 'echo $$; kill -STOP $$; exec sleep 1000' & read x <&3`, 1},
		"nothing":             {`read x <&3`, 0},
		"nothing but a child": {`sh -c :; read x <&3`, 0},
	} {
		for _, adopt := range []bool{true, false} {
			if !adopt && name == "its mark is lower" {
				continue // only a process that adopts its descendants finds one whose mark is no call's
			}
			t.Run(fmt.Sprintf("%s/adopt=%v", name, adopt), func(t *testing.T) {
				// The program ends once every process has said who it is.
				member := family(t, adopt).Member()
				mark := member.Marks().Next()
				call := member.Begin("c", mark)
				p := startWithInput(t, call, mark, test.script)
				var left []int
				for range test.left {
					left = append(left, p.pid(t))
				}
				p.finish(t)
				p.wait(t)
				ended, err := call.End()
				if err != nil || ended < test.left {
					t.Errorf("ended %d processes, %v", ended, err)
				}
				for _, pid := range left {
					if !goneOrInits(pid) {
						t.Errorf("process %d outlived its call", pid)
					}
				}
			})
		}
	}
}

// goneOrInits reports whether a process is gone, or is a zombie that another process has
// adopted and will wait for.
func goneOrInits(pid int) bool {
	p, err := proctree.Read(pid)
	return err != nil || p.Zombie && p.Parent != os.Getpid()
}

// A stoppable is a program that ends when finish lets it.
type stoppable struct {
	program
	in *os.File
}

// startWithInput starts a script that reads a line from descriptor 3 before it ends.
func startWithInput(t testing.TB, call *descendants.Call, mark procmark.Mark, script string) stoppable {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TEST_SCRIPT=" + script, "TEST_MARK=" + strconv.FormatUint(uint64(mark), 10)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{r}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	call.Started(cmd.Process.Pid)
	s := stoppable{program{cmd, bufio.NewReader(out)}, w}
	t.Cleanup(func() { _ = w.Close() })
	return s
}

func (s stoppable) finish(t testing.TB) {
	t.Helper()
	if _, err := s.in.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
}

// What belongs to a call that runs is left alone when another call ends, and so is what
// has nothing to do with calls.
func TestOthersAreLeftAlone(t *testing.T) {
	f := family(t, true)
	one, two := f.Member(), f.Member()
	mark := one.Marks().Next()
	call := one.Begin("c", mark)
	running := startWithInput(t, call, mark, `setsid `+forever+` & read x <&3`)
	left := running.pid(t)
	own := exec.Command("sleep", "1000")
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = own.Process.Kill(); _ = own.Wait() }()

	mark = two.Marks().Next()
	other := two.Begin("c", mark)
	p := start(t, other, mark, `:`)
	p.wait(t)
	if ended, err := other.End(); ended != 0 || err != nil {
		t.Errorf("ended %d, %v", ended, err)
	}
	if ended, err := two.Close(); ended != 0 || err != nil {
		t.Errorf("the close of another agent ended %d, %v", ended, err)
	}
	for _, pid := range []int{left, running.Process.Pid, own.Process.Pid} {
		if p, err := proctree.Read(pid); err != nil || p.Zombie {
			t.Errorf("process %d: %+v, %v", pid, p, err)
		}
	}
	running.finish(t)
	running.wait(t)
	if ended, err := call.End(); ended != 1 || err != nil || !gone(left) {
		t.Errorf("ended %d, %v", ended, err)
	}
	if one.Ended() != 1 || two.Ended() != 0 {
		t.Errorf("%d and %d were counted", one.Ended(), two.Ended())
	}
	if gone(own.Process.Pid) {
		t.Error("a process of another part of the program was ended")
	}
}

// A program that embeds agents may start each of them by itself, which makes a family of each:
// the end of one agent's call leaves the other one's programs alone.
func TestFamiliesOfOneProcess(t *testing.T) {
	one, two := family(t, false).Member(), family(t, false).Member()
	mark := one.Marks().Next()
	call := one.Begin("c", mark)
	running := startWithInput(t, call, mark, `setsid `+forever+` & read x <&3`)
	left := running.pid(t)

	mark = two.Marks().Next()
	other := two.Begin("c", mark)
	start(t, other, mark, `:`).wait(t)
	if ended, err := other.End(); ended != 0 || err != nil {
		t.Errorf("ended %d, %v", ended, err)
	}
	for _, pid := range []int{left, running.Process.Pid} {
		if p, err := proctree.Read(pid); err != nil || p.Zombie {
			t.Errorf("process %d: %+v, %v", pid, p, err)
		}
	}
	running.finish(t)
	running.wait(t)
	if ended, err := call.End(); ended != 1 || err != nil || !goneOrInits(left) {
		t.Errorf("ended %d, %v", ended, err)
	}
}

// A bomb of forks is defused.
func TestForkBomb(t *testing.T) {
	member := family(t, true).Member()
	mark := member.Marks().Next()
	call := member.Begin("c", mark)
	// Each process starts two others of its kind in sessions of their own and ends; the
	// limit keeps the machine usable if the test fails.
	p := start(t, call, mark, `echo 1; exec env MARK=x sh -c 'bomb() { n=0; while [ $n -lt 400 ]; do setsid sh -c "sleep 1000 & sleep 1000" & n=$((n+1)); done; }; bomb'`)
	if p.pid(t) != 1 {
		t.Fatal("it has not begun")
	}
	_ = p.Process.Kill() // in the middle of it
	p.wait(t)
	if _, err := call.End(); err != nil {
		t.Fatal(err)
	}
	pids, err := proctree.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if m, err := procmark.Of(pid); err == nil && m == mark {
			t.Errorf("process %d is left", pid)
		}
	}
}

// Processes that carry no mark are ended once no call runs, and not before: nothing
// shows whose they are.
func TestWithoutMarks(t *testing.T) {
	member := family(t, true).Member()
	first, second := member.Begin("c", procmark.None), member.Begin("c", procmark.None)
	p := startWithInput(t, first, procmark.None, `setsid `+forever+` & read x <&3`)
	q := startWithInput(t, second, procmark.None, `read x <&3`)
	left := p.pid(t)
	p.finish(t)
	p.wait(t)
	if ended, err := first.End(); ended != 0 || err != nil || gone(left) {
		t.Errorf("while another call runs, %d were ended, %v", ended, err)
	}
	q.finish(t)
	q.wait(t)
	if ended, err := second.End(); ended != 1 || err != nil || !gone(left) {
		t.Errorf("%d were ended, %v", ended, err)
	}
}

// The next run of an agent ends what one that crashed has left, and nothing of one that
// runs.
func TestSuccession(t *testing.T) {
	file := filepath.Join(t.TempDir(), "marks")
	crashed := family(t, false).Member()
	if ended, err := crashed.Succeed(file); ended != 0 || err != nil {
		t.Fatalf("%d, %v", ended, err)
	}
	mark := crashed.Marks().Next()
	p := startWithInput(t, crashed.Begin("c", mark), mark, `setsid `+forever+` & read x <&3`)
	left := p.pid(t)
	sibling := family(t, false).Member()
	mark = sibling.Marks().Next()
	other := startWithInput(t, sibling.Begin("c", mark), mark, `echo $$; read x <&3`)
	other.pid(t)

	next := family(t, false).Member()
	ended, err := next.Succeed(file)
	if ended != 2 || err != nil || !goneOrInits(left) {
		t.Errorf("ended %d, %v", ended, err)
	}
	_, _ = p.Process.Wait() // as an orphan it has been waited for, unless init adopts it
	other.finish(t)         // it runs
	other.wait(t)
	if _, err := next.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the note is left: %v", err)
	}
	if err := os.WriteFile(file, []byte("no note"), 0o600); err != nil {
		t.Fatal(err)
	}
	if ended, err := family(t, false).Member().Succeed(file); ended != 0 || err != nil {
		t.Errorf("after half a note: %d, %v", ended, err)
	}
}

// The end of a call that has left nothing.
func BenchmarkEnd(b *testing.B) {
	for _, adopt := range []bool{true, false} {
		b.Run(fmt.Sprintf("adopt=%v", adopt), func(b *testing.B) {
			member := family(b, adopt).Member()
			for b.Loop() {
				call := member.Begin("c", member.Marks().Next())
				if ended, err := call.End(); ended != 0 || err != nil {
					b.Fatal(ended, err)
				}
			}
		})
	}
}
