package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

const (
	// probe is the command line of a helper that only answers.
	probe = "probe"
	// probed is what it answers.
	probed = "agentd confine: ready"
	// probeTimeout is far more than a helper takes on a busy machine. A program that is no
	// helper may run for as long.
	probeTimeout = 20 * time.Second
)

// ErrNotHelper reports that the program of this process does not call [Main] where
// [IsHelper] says so: it would run a second time in place of each program that is to be
// confined.
var ErrNotHelper = errors.New("sandbox: this program does not become the helper that confines programs: at the beginning of main, call sandbox.Main where sandbox.IsHelper says so")

// Probe starts the helper once and returns [ErrNotHelper] unless it answers. Call it before
// the first program is confined.
func Probe(ctx context.Context) error {
	if IsHelper(os.Args) {
		return ErrNotHelper // this process is to be the helper, and has come here
	}
	if !supported {
		return nil
	}
	answer, err := ask(ctx)
	if err == nil && answer != probed {
		err = ErrNotHelper
	}
	return err
}

// ask starts the helper with a question, and returns its answer.
func ask(ctx context.Context, question ...string) (answer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	read, write, err := os.Pipe()
	if err != nil {
		return "", fmt.Errorf("sandbox: %w", err)
	}
	defer read.Close() //nolint:errcheck // it was only read
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = append([]string{"agentd", verb, probe}, question...)
	cmd.Env = []string{}
	cmd.ExtraFiles = []*os.File{write}
	err = cmd.Start()
	_ = write.Close() // nothing has been written here
	if err != nil {
		return "", fmt.Errorf("sandbox: the helper cannot be started: %w", err)
	}
	err = cmd.Wait()
	// What a program that is no helper has started may keep the pipe open.
	_ = read.SetReadDeadline(time.Now().Add(time.Second))
	text, _ := io.ReadAll(io.LimitReader(read, maxReport)) // less is no answer
	switch {
	case len(text) > 0:
		return string(text), nil
	case context.Cause(ctx) != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", fmt.Errorf("sandbox: the helper: %w", context.Cause(ctx))
	case err != nil:
		return "", fmt.Errorf("%w (it ended with: %w)", ErrNotHelper, err)
	}
	return "", ErrNotHelper
}

// answerProbe answers a probe, or the question in it.
func answerProbe(question []string) error {
	if len(question) > 0 {
		var t trial
		if err := json.Unmarshal([]byte(question[0]), &t); err != nil {
			return err
		}
		if err := t.try(); err != nil {
			return err
		}
	}
	_, err := os.NewFile(reportFD, "report").WriteString(probed)
	return err
}
