package auditerr

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The names of the codes are in scripts and in responses of the control API.
func TestCodeNamesAreStable(t *testing.T) {
	t.Parallel()
	var names []string
	for code := CodeInvalid; code <= CodeUnsupported; code++ {
		names = append(names, code.String())
	}
	const want = "invalid not-found not-an-audit-log newer-version locked busy read-only disk-full corrupt io rollback " +
		"tampered key-missing key-unsafe closed uncertain unsupported"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	text, err := json.Marshal(map[string]Code{"code": CodeFull})
	if err != nil || string(text) != `{"code":"disk-full"}` {
		t.Errorf("%s, %v", text, err)
	}
	var back struct{ Code Code }
	if err := json.Unmarshal(text, &back); err != nil || back.Code != CodeFull {
		t.Errorf("%v, %v", back.Code, err)
	}
	if err := json.Unmarshal([]byte(`{"code":"disk full"}`), &back); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("an unknown code: %v", err)
	}
}

// Each of SQLite's results that an operator can do something about comes with what
// to do.
func TestRemedies(t *testing.T) {
	t.Parallel()
	for result, hint := range map[int]string{
		5: "end its transaction", 6: "end its transaction", 8: "write permission", 11: "restore the newest backup", 13: "free some disk space",
		14: "its folder exist", 19: "verify the log", 26: "give the path of an audit database",
	} {
		e := &Error{Msg: "m", Code: CodeIO}
		e.classify(result)
		if !strings.Contains(e.Error(), "("+e.Hint+")") || !strings.Contains(e.Hint, hint) {
			t.Errorf("result %d: %q, want %q", result, e, hint)
		}
	}
}

// A wrapped error keeps its cause for errors.Is and errors.As, and its code is
// found through any number of wrappers.
func TestCauseOfAWrappedError(t *testing.T) {
	t.Parallel()
	_, cause := os.Open(filepath.Join(t.TempDir(), "not-there"))
	err := fmt.Errorf("outer: %w", errors.Join(errors.New("other"), Wrap("/a.db", "opening", cause)))
	if !errors.Is(err, fs.ErrNotExist) || CodeOf(err) != CodeIO {
		t.Errorf("%v has the code %v", err, CodeOf(err))
	}
	if path, ok := errors.AsType[*fs.PathError](err); !ok || path != cause {
		t.Errorf("the cause is %v", path)
	}
	twice := &Error{Code: CodeTampered, Err: &Error{Code: CodeIO}}
	if CodeOf(twice) != CodeTampered {
		t.Errorf("the code of the outer error is %v", CodeOf(twice))
	}
	if got := Wrap("/b.db", "reading", twice); got != error(twice) {
		t.Errorf("an error of its own became %v", got)
	}
}
