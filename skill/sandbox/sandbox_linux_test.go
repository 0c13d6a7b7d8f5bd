package sandbox_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/procmark"
	"github.com/agentd/agentd/skill/sandbox"
)

// The test binary is also the helper, and the program that attacks.
func TestMain(m *testing.M) {
	program, _ := os.Executable()
	switch {
	case filepath.Base(program) == noHelper:
		_, noThreads := sandbox.OpenThreads(context.Background())
		fmt.Print(sandbox.Probe(context.Background()), noThreads)
		os.Exit(0)
	case sandbox.IsHelper(os.Args):
		os.Exit(sandbox.Main(os.Args))
	case os.Getenv("SANDBOX_MAY_NOT_SWITCH") != "":
		fmt.Print(mayNotSwitch())
		os.Exit(0)
	case os.Getenv("SANDBOX_PROGRAM") != "":
		if err := goProgram(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("ok")
		os.Exit(0)
	case os.Getenv("SANDBOX_ATTACK") != "":
		var t targets
		if err := json.Unmarshal([]byte(os.Getenv("SANDBOX_ATTACK")), &t); err != nil {
			panic(err)
		}
		all := attacks()
		if !t.Off {
			all = append(all, privileged()...)
		}
		for _, a := range all {
			verdict := "done"
			if err := a.try(&t); err != nil {
				verdict = "refused: " + err.Error()
			}
			fmt.Printf("%s\t%s\n", a.name, verdict)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A user is one under whom a test runs confined programs, in one of the ways to start them.
type user struct {
	name       string
	credential *syscall.Credential // nil is the test's own
	uid        int
	threads    *sandbox.Threads // nil is the helper
}

// users returns the users that the test may run programs as, the test's own first, with the
// helper and with threads.
func users(t *testing.T) []user {
	t.Helper()
	own := user{name: "the user", uid: os.Getuid()}
	all := []user{own}
	if own.uid == 0 {
		const nobody = 65534
		own.name = "root"
		all = []user{own, {name: "another user", credential: &syscall.Credential{Uid: nobody, Gid: nobody, NoSetGroups: true}, uid: nobody}}
	}
	threads, err := sandbox.OpenThreads(t.Context())
	if err != nil {
		t.Logf("not tested: programs that threads start: %v", err)
		return all
	}
	own.name += " by a thread"
	own.threads = threads
	return append(all, own)
}

// folder makes a folder of a user below /tmp, which others may enter.
func (u user) folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sandbox-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	u.own(t, dir)
	return dir
}

func (u user) own(t *testing.T, path string) {
	t.Helper()
	if err := os.Chown(path, u.uid, -1); err != nil {
		t.Fatal(err)
	}
}

// file writes a file of the user.
func (u user) file(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	u.own(t, path)
	return path
}

// available skips a test where the kernel cannot hold what it is about.
func available(t *testing.T) {
	t.Helper()
	if missing := sandbox.Available().Missing(); len(missing) > 0 {
		t.Skipf("this kernel cannot hold a program to its policy: %v", missing)
	}
}

// run runs a program under a policy, and returns what it printed, and its error.
func (u user) run(t *testing.T, p sandbox.Policy, env []string, dir string, command ...string) (string, error) {
	t.Helper()
	tmp := u.folder(t)
	if p.User != nil {
		user{uid: p.User.UID}.own(t, tmp)
	}
	if !p.Off {
		p.Write = append(p.Write, sandbox.Path{Name: tmp, Required: true})
	}
	s := sandbox.Sandbox{Policy: p, Marks: procmark.NewSource(), Threads: u.threads}
	run, err := s.Begin("any")
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + tmp, "TMPDIR=" + tmp, "GORACE=atexit_sleep_ms=0"}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: u.credential, Setpgid: true}
	if err := run.Confine(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = run.Start(t.Context(), cmd)
	run.Started()
	if err != nil {
		if u.threads == nil {
			t.Fatal(err)
		}
		return "", err
	}
	err = cmd.Wait()
	if failure := run.Failure(); failure != nil {
		err = failure
	}
	return out.String(), err
}

// lookPath finds a program as the user does, who may not enter root's folders: some
// machines have a Python there.
func (u user) lookPath(t *testing.T, program string) string {
	t.Helper()
	dirs := filepath.SplitList(os.Getenv("PATH"))
	if strings.Contains(program, "/") {
		dirs = []string{"/"}
	}
	for _, dir := range dirs {
		path, err := exec.LookPath(filepath.Join(dir, program))
		if err == nil && (u.credential == nil || !strings.HasPrefix(path, "/root/")) {
			return path
		}
	}
	t.Skipf("%s is not installed", program)
	return ""
}

// Programs as people write them run under the default policy.
func TestJustRuns(t *testing.T) {
	available(t)
	for _, u := range users(t) {
		for _, test := range []struct{ name, program, file, text string }{
			{"shell", "sh", "main.sh", shellProgram}, {"bash", "bash", "main.sh", bashProgram},
			{"python", "python3", "main.py", pythonProgram}, {"system python", "/usr/bin/python3", "main.py", pythonProgram},
			{"node", "node", "main.js", nodeProgram}, {"go", "", "main.txt", "go"},
		} {
			program := test.program
			if program == "" {
				program = testProgram(t)
			}
			t.Run(u.name+"/"+test.name, func(t *testing.T) {
				t.Parallel()
				program := u.lookPath(t, program)
				dir := u.folder(t)
				u.file(t, filepath.Join(dir, "beside.py"), "word = 'beside'\n", 0o600)
				u.file(t, filepath.Join(dir, "beside.js"), "exports.word = 'beside'\n", 0o600)
				u.file(t, filepath.Join(dir, test.file), test.text, 0o600)
				out, err := u.run(t, sandbox.Default(dir), []string{"SANDBOX_PROGRAM=" + test.text}, dir, program, test.file)
				if err != nil || !strings.HasSuffix(out, "ok\n") {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}

// goProgram is what a program in Go may expect.
func goProgram() error {
	file, err := os.CreateTemp("", "")
	if err != nil {
		return err
	}
	if err := errors.Join(file.Close(), os.Rename(file.Name(), file.Name()+"2")); err != nil {
		return err
	}
	if out, err := exec.Command("sh", "-c", "echo child").Output(); err != nil || string(out) != "child\n" {
		return fmt.Errorf("a child: %q, %w", out, err)
	}
	if _, err := net.LookupHost("localhost"); err != nil {
		return err
	}
	if _, err := x509.SystemCertPool(); err != nil {
		return err
	}
	if _, err := time.LoadLocation("Europe/Berlin"); err != nil {
		return err
	}
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() { runtime.LockOSThread() }) // each takes a thread with it
	}
	all.Wait()
	if _, err := net.Interfaces(); err != nil {
		return err
	}
	_, err = os.ReadFile("beside.py")
	return err
}

const shellProgram = `set -e
f=$(mktemp); echo a >"$f"; cat "$f" | grep a >/dev/null; mkdir "$HOME/d"; mv "$f" "$HOME/d/f"
cat <<END >/dev/null
here
END
(sleep 0 & wait); ls >/dev/null; getent hosts localhost >/dev/null; id -u >/dev/null; date >/dev/null
echo ok
`

const bashProgram = `set -euo pipefail
read -r a <<<"here string"; diff <(echo a) <(echo a); printf '%s\n' "$RANDOM" >/dev/null
f=$(mktemp); exec 5<>"$f"; echo x >&5; [[ $(<"$f") == x ]]
echo ok
`

const pythonProgram = `
import tempfile, subprocess, socket, ssl, threading, multiprocessing, os, pwd, asyncio, sys, zoneinfo, shutil, pathlib
import beside
def square(n): return n * n
if __name__ == "__main__":
    with tempfile.NamedTemporaryFile() as f: f.write(b"x")
    d = pathlib.Path(tempfile.mkdtemp()); (d / "a").write_text("a"); (d / "b").mkdir(); os.rename(d / "a", d / "b" / "a"); shutil.copy(d / "b" / "a", d / "c"); shutil.rmtree(d)
    assert subprocess.run(["sh", "-c", "echo $0"], capture_output=True, text=True, check=True).stdout
    socket.getaddrinfo("localhost", 80)
    assert ssl.create_default_context().get_ca_certs() or not os.path.isdir("/etc/ssl/certs")
    t = threading.Thread(target=square, args=(2,)); t.start(); t.join()
    with multiprocessing.Pool(2) as pool: assert pool.map(square, [1, 2, 3]) == [1, 4, 9]
    with multiprocessing.get_context("spawn").Pool(1) as pool: assert pool.map(square, [3]) == [9]
    async def child():
        p = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(1)", stdout=subprocess.PIPE)
        return await p.communicate()
    asyncio.run(child())
    pwd.getpwuid(0); open("/dev/null", "w").write("x"); open("/proc/self/status").read(); os.urandom(4); os.cpu_count()
    assert beside.word == "beside" and os.listdir(".")
    print("ok")
`

const nodeProgram = `
const fs = require("fs"), os = require("os"), path = require("path"), cp = require("child_process"), dns = require("dns"), tls = require("tls");
const { Worker } = require("worker_threads");
if (process.argv[2] === "child") { process.on("message", m => { process.send(m + 1); process.disconnect(); }); return; }
if (require("./beside.js").word !== "beside") throw new Error("beside");
const d = fs.mkdtempSync(path.join(os.tmpdir(), "x-")); fs.writeFileSync(path.join(d, "a"), "a"); fs.mkdirSync(path.join(d, "b")); fs.renameSync(path.join(d, "a"), path.join(d, "b", "a"));
os.networkInterfaces(); os.cpus(); require("crypto").randomBytes(4); if (!tls.rootCertificates.length) throw new Error("roots");
cp.execFileSync("sh", ["-c", "true"]);
dns.lookup("localhost", err => { if (err) throw err;
  const w = new Worker("require('worker_threads').parentPort.postMessage(1)", { eval: true });
  w.on("message", () => {
    const c = cp.fork(__filename, ["child"]); c.send(1); c.on("message", m => { if (m !== 2) throw new Error("fork"); });
    c.on("exit", () => console.log("ok"));
  });
});
`

// noHelper is the name of a program that does not call Main.
const noHelper = "no-helper"

// A program that does not become the helper finds out before it confines another, and where
// it is started as one, at once.
func TestProbe(t *testing.T) {
	if err := sandbox.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	program := filepath.Join(t.TempDir(), noHelper)
	if err := os.Rename(testProgram(t), program); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{nil, {"confine", "probe"}, {"confine", "{}", "/bin/true", "true"}} {
		cmd := exec.CommandContext(t.Context(), program, args...)
		out, err := cmd.CombinedOutput()
		refusals := 1 // of a probe
		if len(args) > 0 {
			refusals = 2 // and of a start on a thread: it would come here again, and so on
		}
		if err != nil || strings.Count(string(out), sandbox.ErrNotHelper.Error()) != refusals {
			t.Errorf("%q: %v: %s", args, err, out)
		}
	}
}
