package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/internal/progress"
)

// maxStateBytes bounds the file of a stopped verification.
const maxStateBytes = 1 << 20

// verifyOne verifies one log. If ctrl-c stops it, it keeps how far it has come for --continue.
// It keeps that in a folder of the verifier's, away from the log: who can write there can
// have records passed over.
func verifyOne(ctx context.Context, env *cli.Env, log Log, opts auditchain.VerifyOptions, goOn bool) (*auditchain.Report, error) {
	file, err := stateFile(env, log.Origin())
	if err != nil && goOn {
		return nil, err
	}
	var begun []byte // what the file says that this run continues from
	if goOn {
		opts.Continue, begun, err = readState(file)
		if errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(env.Stderr, "%s: no verification was stopped: the whole log is verified.\n", output.Printable(log.Agent))
		} else if err != nil {
			return nil, fmt.Errorf("--continue: %w", err)
		}
	}
	if file != "" {
		opts.Stopped = func(s *auditchain.VerifyState) {
			if err := writeState(file, s); err != nil {
				fmt.Fprintf(env.Stderr, "how far the verification has come could not be kept: %v\n", err)
				return
			}
			fmt.Fprintf(env.Stderr, "%s: stopped; records 1 to %s are verified. To go on from there: agentd audit verify --continue, and the options of this one.\n",
				output.Printable(log.Agent), progress.Count(s.Size))
		}
	}
	line := verifying(env, log)
	opts.Progress = line.Set
	report, err := func() (*auditchain.Report, error) {
		defer line.End()
		stopped := opts.Stopped
		if stopped != nil {
			opts.Stopped = func(s *auditchain.VerifyState) { line.End(); stopped(s) }
		}
		return log.Verify(ctx, opts)
	}()
	if err == nil && opts.Continue != nil {
		removeState(file, begun)
	}
	return report, err
}

// removeState removes what a run has continued from and completed. Another run may have been
// stopped meanwhile: what that has kept stays.
func removeState(file string, begun []byte) {
	if _, now, err := readState(file); err == nil && bytes.Equal(now, begun) {
		_ = os.Remove(file) // one that stays is continued from once more
	}
}

// stateFile returns the file in which a stopped verification of a log is kept.
func stateFile(env *cli.Env, origin string) (string, error) {
	state := env.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // the specification ignores relative paths
		home := env.Getenv("HOME")
		if home == "" {
			return "", errors.New("neither XDG_STATE_HOME nor HOME is set: there is no folder for what a stopped verification has found")
		}
		state = filepath.Join(home, ".local", "state")
	}
	sum := sha256.Sum256([]byte(origin))
	return filepath.Join(state, "agentd-verify", hex.EncodeToString(sum[:12])+".json"), nil
}

// readState reads what [writeState] has written, and returns its text, too. A file that others
// may write to, or have written, says nothing.
func readState(name string) (*auditchain.VerifyState, []byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	info, err := file.Stat()            // of what is read, whatever has the name by then
	if err == nil {
		err = checkStateFile(info, os.Geteuid())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s %w: verify the whole log", name, err)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxStateBytes))
	if err != nil {
		return nil, nil, err
	}
	s := &auditchain.VerifyState{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, nil, fmt.Errorf("%s cannot be read (%w): verify the whole log", name, err)
	}
	return s, text, nil
}

// checkStateFile checks that nobody but a user can have written a file.
func checkStateFile(info fs.FileInfo, user int) error {
	if info.Mode().Perm()&0o022 != 0 {
		return errors.New("can be written by others")
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !info.Mode().IsRegular() || ok && int(stat.Uid) != user {
		return errors.New("is not a file of this user")
	}
	return nil
}

func writeState(file string, s *auditchain.VerifyState) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}
