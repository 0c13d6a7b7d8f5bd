package skill

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
)

// maxCompilerBytes bounds what an error repeats of the compiler's output.
const maxCompilerBytes = 8 << 10

// Builds builds the programs that skills name with `go run`. The command writes to the
// user's build cache, so a confined program cannot run it: with the cache it could change
// what the user builds elsewhere. agentd builds the program itself, with its own
// environment, before each call; that does nothing while the program is up to date. It is
// safe for concurrent use.
type Builds struct {
	folder string

	mu   sync.Mutex
	made map[string]*build // by the command and its folder; guarded by mu
}

// NewBuilds returns builds whose programs go to a folder.
func NewBuilds(folder string) *Builds { return &Builds{folder: folder, made: map[string]*build{}} }

// A build is one program.
type build struct {
	turn    chan struct{} // holds one token: one go command at a time
	started int           // builds so far; guarded by Builds.mu
	err     error         // of the last one; guarded by turn
}

// program returns what to execute for a process: its command, or the program of a `go run`.
func (b *Builds) program(ctx context.Context, p *Process) ([]string, error) {
	if b == nil || !isGoRun(p.Command) {
		return p.Command, nil
	}
	words, args, err := goBuild(p.Command)
	if err != nil {
		return nil, &rpc.SkillError{Message: notStarted, Err: err}
	}
	key := sha256.Sum256([]byte(strings.Join(append([]string{p.Dir}, words...), "\x00")))
	out := filepath.Join(b.folder, hex.EncodeToString(key[:8]), programName(words[len(words)-1], p.Dir))
	if err := b.make(ctx, out, p, words); err != nil {
		return nil, err
	}
	return append([]string{out}, args...), nil
}

// make builds a program. Calls that arrive while it is built share the next build: the one
// that runs may have read the files before they were changed.
func (b *Builds) make(ctx context.Context, out string, p *Process, words []string) error {
	b.mu.Lock()
	one := b.made[out]
	if one == nil {
		one = &build{turn: make(chan struct{}, 1)}
		one.turn <- struct{}{}
		b.made[out] = one
	}
	seen := one.started
	b.mu.Unlock()
	select {
	case <-one.turn:
	case <-ctx.Done():
		return fmt.Errorf("skill: stopped: %w", context.Cause(ctx))
	}
	defer func() { one.turn <- struct{}{} }()
	b.mu.Lock()
	shared := one.started > seen
	b.mu.Unlock()
	if shared && !errors.Is(one.err, errStopped) {
		return one.err
	}
	b.mu.Lock()
	one.started++
	b.mu.Unlock()
	one.err = compile(ctx, out, p, words)
	return one.err
}

// errStopped is the end of a build whose own call has ended.
var errStopped = errors.New("skill: the build was stopped")

// compile runs the go command. Its environment is agentd's own and what the skill's file
// sets: the source is the operator's, as the files of the fleet are.
func compile(ctx context.Context, out string, p *Process, words []string) error {
	// Who can enter the folder of the builds may start them: a skill that runs as another
	// user, if the folder is for such skills.
	for _, folder := range []string{filepath.Dir(filepath.Dir(out)), filepath.Dir(out)} {
		if err := errors.Join(os.MkdirAll(folder, 0o700), os.Chmod(folder, 0o711)); err != nil { //nolint:gosec // see above
			return &rpc.SkillError{Message: notStarted, Err: err}
		}
	}
	var said cappedBuffer
	said.most, said.overflow = 16*maxCompilerBytes, func() {}
	cmd := exec.CommandContext(ctx, p.Command[0], append([]string{"build", "-o", out, "-buildvcs=false", "-ldflags=-s -w"}, words...)...)
	cmd.Dir, cmd.Env = p.Dir, append(os.Environ(), p.Env...)
	cmd.Stdout, cmd.Stderr = &said, &said
	// The compiler's processes end with the command.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = DefaultKillGrace
	err := cmd.Run()
	switch {
	case err == nil:
		if err := os.Chmod(out, 0o755); err != nil { //nolint:gosec // see above
			return &rpc.SkillError{Message: notStarted, Err: err}
		}
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", errStopped, context.Cause(ctx))
	default:
		text := strings.TrimSpace(said.buf.String())
		return &rpc.SkillError{Message: "the skill could not be built", Err: fmt.Errorf("go build: %w\n%s", err, truncate.String(text, maxCompilerBytes))}
	}
}

// isGoRun reports whether a command is `go run`.
func isGoRun(command []string) bool {
	return len(command) > 2 && filepath.Base(command[0]) == "go" && command[1] == "run"
}

// goBuild splits the words after `go run` into those for `go build`, flags and package, and
// the program's arguments.
func goBuild(command []string) (words, args []string, err error) {
	rest := command[2:]
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		name, _, hasValue := strings.Cut(strings.TrimLeft(rest[0], "-"), "=")
		if name == "exec" {
			return nil, nil, errors.New("`go run -exec` starts another program than the one that is built: name that program in command")
		}
		n := 1
		if !hasValue && !slices.Contains(goBoolFlags(), name) {
			n = 2
		}
		n = min(n, len(rest))
		words = append(words, rest[:n]...)
		rest = rest[n:]
	}
	if len(rest) == 0 {
		return nil, nil, errors.New("`go run` names no package")
	}
	n := 1
	if strings.HasSuffix(rest[0], ".go") {
		for n < len(rest) && strings.HasSuffix(rest[n], ".go") {
			n++
		}
	}
	if strings.Contains(rest[0], "@") {
		return nil, nil, fmt.Errorf("`go run %s` builds what is not in this module: install the program with `go install`, and name it in command", rest[0])
	}
	return append(words, rest[:n]...), rest[n:], nil
}

// goBoolFlags are the flags of `go build` without a value.
func goBoolFlags() []string {
	return []string{"a", "n", "race", "msan", "asan", "cover", "v", "work", "x", "json", "linkshared", "modcacherw", "trimpath"}
}

// programName is what `go run` calls the program of a package or a file.
func programName(of, dir string) string {
	name := strings.TrimSuffix(path.Base(filepath.ToSlash(of)), ".go")
	if name == "." || name == ".." || name == "/" {
		name = filepath.Base(filepath.Join(dir, of))
	}
	return name
}
