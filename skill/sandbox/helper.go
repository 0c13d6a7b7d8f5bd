package sandbox

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

const (
	// verb makes a command line one of the helper's.
	verb = "confine"
	// reportFD is where the helper writes why it has failed; execve closes it.
	reportFD = 3
	// exitFailed is the status of a helper that has failed.
	exitFailed = 126
	// sealed begins the names of the program's variables in the helper's environment, where
	// they mean nothing: LD_PRELOAD and LD_LIBRARY_PATH would have the loader run code of a
	// skill in a helper that is linked to shared libraries, before anything confines it, and
	// GODEBUG changes the Go runtime.
	sealed = "confined:"
	// maxReport bounds what is read of a report.
	maxReport = 8 << 10
)

// IsHelper reports whether a command line is one of the helper. A program that starts
// confined programs must ask before anything else, and call [Main].
func IsHelper(args []string) bool { return len(args) > 1 && args[1] == verb }

// Main is the helper: it confines this process and becomes the program. It returns only
// when that has failed, or after the answer to a [Probe], with the exit status.
func Main(args []string) int {
	var err error
	switch {
	case len(args) >= 3 && args[2] == probe:
		err = answerProbe(args[3:])
	case len(args) == 3 && args[2] == held:
		err = answerHeld()
	default:
		err = become(args)
	}
	if err == nil { // an answer
		return 0
	}
	step, text := "start", err.Error()
	var errno syscall.Errno
	errors.As(err, &errno)
	if e := (*Error)(nil); errors.As(err, &e) {
		step, text = e.Step, e.Text
	}
	report, _ := json.Marshal(failure{Step: step, Text: text, Errno: errno}) // it has no values that cannot be encoded
	if _, err := os.NewFile(reportFD, "report").Write(report); err != nil {
		fmt.Fprintf(os.Stderr, "agentd confine: %s: %s\n", step, text)
	}
	return exitFailed
}

// become reads the command line that [command] makes: the policy, the program's path, and
// its arguments from the zeroth.
func become(args []string) error {
	if len(args) < 5 {
		return errors.New("agentd starts this command for skills; it is for nobody else")
	}
	var p Policy
	if err := json.Unmarshal([]byte(args[2]), &p); err != nil {
		return err
	}
	return confine(&p, args[3], args[4:])
}

// command makes a prepared command one that starts the helper, which becomes the program
// of that command.
func command(cmd *exec.Cmd, p *Policy, helper string) error {
	policy, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	cmd.Args = append([]string{"agentd", verb, string(policy), cmd.Path}, cmd.Args...)
	// The file that this process was started from, even if an upgrade has replaced it.
	cmd.Path = cmp.Or(helper, "/proc/self/exe")
	cmd.Env = seal(cmd.Environ())
	return nil
}

// seal hides the variables of a program from its helper.
func seal(env []string) []string {
	all := make([]string, len(env))
	for i, variable := range env {
		all[i] = sealed + variable
	}
	return all
}

// unseal returns the program's variables.
func unseal(env []string) (all []string) {
	for _, variable := range env {
		if of, ok := strings.CutPrefix(variable, sealed); ok {
			all = append(all, of)
		}
	}
	return all
}

// failure is an [Error] on its way from the helper.
type failure struct {
	Step  string        `json:"step"`
	Text  string        `json:"text"`
	Errno syscall.Errno `json:"errno"`
}

// An Error reports that a program could not be confined, or not be executed. The program
// has not run.
type Error struct {
	// Step is what failed: descriptors, mark, no_new_privs, landlock, capabilities, user,
	// seccomp, limits or exec; and of a start by a thread also start, trace or thread.
	Step string
	// Text says what, and why.
	Text string
	// Err is the system's error; it may be nil.
	Err error
}

func (e *Error) Error() string { return "sandbox: " + e.Step + ": " + e.Text }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// readFailure reads the helper's report, when the helper has ended or become the program.
func readFailure(r io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(r, maxReport))
	if err != nil || len(text) == 0 {
		return nil // without a report the program has run
	}
	var f failure
	if err := json.Unmarshal(text, &f); err != nil {
		return &Error{Step: "start", Text: string(text)}
	}
	e := &Error{Step: f.Step, Text: f.Text}
	if f.Errno != 0 {
		e.Err = f.Errno
	}
	return e
}
