package audit

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/output"
)

func twoLogs(t *testing.T) *clitest.Env {
	t.Helper()
	return newOffice(t, map[string][]auditchain.Record{
		"clerk": calls(2, "s-1"), "desk": append(calls(1, "s-1"), calls(2, "s-2")...),
	})
}

// A redaction reaches every log with a matching record, and no other record.
func TestRedact(t *testing.T) {
	t.Parallel()
	env := twoLogs(t)
	if err := Redact(t.Context(), &env.Env, RedactRequest{Matches: []string{"session=s-1"}, Reason: "request", Yes: true}); err != nil {
		t.Fatal(err)
	}
	if want := "clerk: 2 records redacted, under record 3\ndesk: 1 records redacted, under record 4\n"; env.Out.String() != want {
		t.Errorf("%q, want %q", env.Out, want)
	}
	env.Reset()
	env.Format = output.JSONL
	if err := Query(t.Context(), &env.Env, QueryRequest{Conditions: Conditions{"text": {"status"}}}); err != nil {
		t.Fatal(err)
	}
	if got := lines[seqOnly](t, env.Out.String()); len(got) != 2 {
		t.Errorf("%d records still have their content, want the 2 of the other session", len(got))
	}
	env.Reset()
	env.Format = output.Table
	if err := Verify(t.Context(), &env.Env, VerifyRequest{}); err != nil || !strings.Contains(env.Out.String(), "2 erased") {
		t.Errorf("%v: %s", err, env.Out)
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	env := twoLogs(t)
	env.Format = output.JSON
	if err := Prune(t.Context(), &env.Env, PruneRequest{Logs: Choice{Agent: "desk"}, OlderThan: "0s", Reason: "policy", Yes: true}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(env.Out.String(), `"agent": "desk"`) || !strings.Contains(env.Out.String(), `"count": 3`) || strings.Contains(env.Out.String(), "clerk") {
		t.Errorf("%s", env.Out)
	}
	env.Reset()
	if err := Stats(t.Context(), &env.Env, Choice{Agent: "desk"}); err != nil || !strings.Contains(env.Out.String(), `"pruned": 3`) {
		t.Errorf("%v: %s", err, env.Out)
	}
}

// Nothing to erase is no failure, and leaves no record behind.
func TestEraseNothing(t *testing.T) {
	t.Parallel()
	env := twoLogs(t)
	for name, erase := range map[string]func() error{
		"redact": func() error {
			return Redact(t.Context(), &env.Env, RedactRequest{Matches: []string{"session=none"}, Reason: "x"})
		},
		"prune": func() error { return Prune(t.Context(), &env.Env, PruneRequest{OlderThan: "1d", Reason: "x"}) },
	} {
		env.Reset()
		env.Format = output.JSON
		if err := erase(); err != nil || env.Out.String() != "[]\n" || !strings.Contains(env.Err.String(), "no audit records match") {
			t.Errorf("%s: %v, %s%s", name, err, env.Out, env.Err)
		}
	}
	env.Reset()
	if err := Stats(t.Context(), &env.Env, Choice{Agent: "desk"}); err != nil || !strings.Contains(env.Out.String(), `"last": 3`) {
		t.Errorf("%v: %s", err, env.Out)
	}
}

// A redaction a second time erases nothing: what it could erase is gone.
func TestRedactTwice(t *testing.T) {
	t.Parallel()
	env := twoLogs(t)
	r := RedactRequest{Matches: []string{"kind=rpc_call"}, Reason: "x", Yes: true}
	if err := Redact(t.Context(), &env.Env, r); err != nil {
		t.Fatal(err)
	}
	env.Reset()
	if err := Redact(t.Context(), &env.Env, r); err != nil || env.Out.String() != "" || !strings.Contains(env.Err.String(), "nothing is redacted") {
		t.Errorf("%v: %s%s", err, env.Out, env.Err)
	}
}

// A log that another process has open, and that nobody can be asked to change,
// fails by itself: the others are changed, and the output tells which.
func TestEraseGoesOn(t *testing.T) {
	t.Parallel()
	env := twoLogs(t)
	held, err := auditchain.Open(t.Context(), dbOf(t, env, "clerk"), auditchain.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	env.Format = output.JSON
	err = Redact(t.Context(), &env.Env, RedactRequest{Matches: []string{"session=s-1"}, Reason: "x", Yes: true})
	if auditchain.CodeOf(err) != auditchain.CodeLocked || clitest.Code(err) != cli.ExitFailed {
		t.Errorf("%v", err)
	}
	for _, want := range []string{`"agent": "clerk"`, `"count": 0`, `"error": "`, `"agent": "desk"`, `"count": 1`} {
		if !strings.Contains(env.Out.String(), want) {
			t.Errorf("no %s in %s", want, env.Out)
		}
	}
}

func TestEraseRequestErrors(t *testing.T) {
	t.Parallel()
	env := twoLogs(t)
	for want, erase := range map[string]func() error{
		"--match: must be like correlation=c-17, not \"session\"": func() error {
			return Redact(t.Context(), &env.Env, RedactRequest{Matches: []string{"session"}, Reason: "x"})
		},
		"--match: must be like correlation=c-17, not \"session=\"": func() error {
			return Redact(t.Context(), &env.Env, RedactRequest{Matches: []string{"session="}, Reason: "x"})
		},
		"--match: session is given twice": func() error {
			return Redact(t.Context(), &env.Env, RedactRequest{Matches: []string{"session=a", "session=b"}, Reason: "x"})
		},
		"--match user: records cannot be matched by \"user\"": func() error {
			return Redact(t.Context(), &env.Env, RedactRequest{Matches: []string{"user=u"}, Reason: "x"})
		},
		"--reason: must not be empty": func() error {
			return Redact(t.Context(), &env.Env, RedactRequest{Matches: []string{"session=s-1"}, Reason: " \t"})
		},
		"--older-than: must be like": func() error {
			return Prune(t.Context(), &env.Env, PruneRequest{OlderThan: "forever", Reason: "x"})
		},
		"add --yes": func() error { // standard input is no terminal
			return Redact(t.Context(), &env.Env, RedactRequest{Matches: []string{"session=s-1"}, Reason: "x"})
		},
	} {
		if err := erase(); clitest.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Neither a file nor the null device is somebody who could confirm.
func TestConfirmNeedsATerminal(t *testing.T) {
	t.Parallel()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	env := clitest.New(t, "")
	file, err := os.Open(env.Write(t, "yes", "yes\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, stdin := range map[string]io.Reader{"null": null, "file": file, "reader": strings.NewReader("yes\n")} {
		env.Stdin = stdin
		if err := confirm(t.Context(), &env.Env, []string{"all of it"}); clitest.Code(err) != cli.ExitUsage {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"yes\n": "yes\n", "no\nyes\n": "no\n", strings.Repeat("y", 200): strings.Repeat("y", 100)} {
		if got, err := readLine(t.Context(), strings.NewReader(text)); got != want || err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	// Nobody types anything, and ctrl-c ends the wait.
	silent, hold := io.Pipe()
	defer hold.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := readLine(ctx, silent); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// A stopped log is compacted in place, and verifies as before.
func TestCompact(t *testing.T) {
	t.Parallel()
	env := twoLogs(t)
	if err := Compact(t.Context(), &env.Env, Choice{}); err == nil || !strings.Contains(err.Error(), "--agent clerk") {
		t.Errorf("of two logs: %v", err)
	}
	if err := Compact(t.Context(), &env.Env, Choice{DB: "nowhere.db"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of none: %v", err)
	}
	if err := Compact(t.Context(), &env.Env, Choice{Agent: "desk"}); err != nil || !strings.Contains(env.Out.String(), "desk: ") {
		t.Errorf("%v: %s", err, env.Out)
	}
	env.Format = output.JSON
	env.Reset()
	if err := Compact(t.Context(), &env.Env, Choice{Agent: "desk"}); err != nil || !strings.Contains(env.Out.String(), `"after": `) {
		t.Errorf("%v: %s", err, env.Out)
	}
	env.Format = output.Table
	if err := Verify(t.Context(), &env.Env, VerifyRequest{}); err != nil {
		t.Error(err)
	}
}

// A verification that was stopped continues from what it has kept, where nobody else can
// write to that.
func TestVerifyContinues(t *testing.T) {
	t.Parallel()
	env := twoLogs(t)
	desk := VerifyRequest{Logs: Choice{Agent: "desk"}, Continue: true}
	if err := Verify(t.Context(), &env.Env, desk); err != nil || !strings.Contains(env.Err.String(), "no verification was stopped") {
		t.Errorf("%v: %s", err, env.Err)
	}
	if err := withOneLog(t.Context(), &env.Env, desk.Logs, func(l Log) error {
		file, err := stateFile(&env.Env, l.Origin())
		if err != nil {
			return err
		}
		var state *auditchain.VerifyState
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		// Stopped at once, it has not come to a checkpoint.
		if _, err := l.Verify(ctx, auditchain.VerifyOptions{Stopped: func(s *auditchain.VerifyState) { state = s }}); err == nil || state != nil {
			t.Errorf("%+v, %v", state, err)
		}
		if err := writeState(file, &auditchain.VerifyState{Origin: "another log"}); err != nil {
			return err
		}
		err = Verify(t.Context(), &env.Env, desk)
		if auditchain.CodeOf(err) != auditchain.CodeInvalid {
			t.Errorf("of another log: %v", err)
		}
		if err := os.Chmod(file, 0o666); err != nil {
			return err
		}
		if err := Verify(t.Context(), &env.Env, desk); err == nil || !strings.Contains(err.Error(), "written by others") {
			t.Errorf("from a file of others: %v", err)
		}
		// A whole one needs none, and does not touch it.
		whole := desk
		whole.Continue = false
		if err := Verify(t.Context(), &env.Env, whole); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(file); err != nil {
			t.Errorf("a run has removed what it has not continued from: %v", err)
		}
		// Once it is continued and complete, nothing of it stays.
		if err := os.Chmod(file, 0o600); err != nil {
			return err
		}
		if err := writeState(file, stoppedAtCheckpoint(t, l)); err != nil {
			return err
		}
		env.Out.Reset()
		if err := Verify(t.Context(), &env.Env, desk); err != nil || !strings.Contains(env.Out.String(), "they were not read again") {
			t.Errorf("%v: %s", err, env.Out)
		}
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the state stays: %v", err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// stoppedAtCheckpoint returns the state of a verification that was stopped at the newest
// checkpoint of a log.
func stoppedAtCheckpoint(t *testing.T, l Log) *auditchain.VerifyState {
	t.Helper()
	note, err := l.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.Parse(string(note))
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := l.Hash(t.Context(), c.Size)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := l.PublicKeys()
	if err != nil {
		t.Fatal(err)
	}
	return &auditchain.VerifyState{
		Origin: l.Origin(), FirstKey: keys[0], Size: c.Size, Root: c.Root, Leaf: leaf, Given: keys, Trusted: keys,
		Report: auditchain.Report{Records: c.Size, Signed: c.Size, Keys: keys},
	}
}

// What a stopped verification has kept counts only if nobody else can have written it, and
// only what was continued is removed.
func TestStateOfSomebodyElse(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state.json")
	if err := writeState(file, &auditchain.VerifyState{Size: 1}); err != nil {
		t.Fatal(err)
	}
	_, begun, err := readState(file)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkStateFile(info, os.Geteuid()+1); err == nil || !strings.Contains(err.Error(), "not a file of this user") {
		t.Errorf("a file of another user: %v", err)
	}
	// Another run is stopped meanwhile.
	if err := writeState(file, &auditchain.VerifyState{Size: 2}); err != nil {
		t.Fatal(err)
	}
	removeState(file, begun)
	if s, _, err := readState(file); err != nil || s.Size != 2 {
		t.Errorf("%+v, %v", s, err)
	}
}
