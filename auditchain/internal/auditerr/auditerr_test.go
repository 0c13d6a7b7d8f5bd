package auditerr

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

func TestErrorText(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	for _, test := range []struct {
		err  *Error
		want string
	}{
		{&Error{Msg: "fault"}, "audit log: fault"},
		{&Error{Msg: "fault", Path: "/a.db"}, "audit log /a.db: fault"},
		{&Error{Msg: "fault", Err: cause}, "audit log: fault: cause"},
		{&Error{Msg: "fault", Hint: "remedy"}, "audit log: fault (remedy)"},
		{&Error{Msg: "fault", Path: "/a.db", Err: cause, Hint: "remedy"}, "audit log /a.db: fault: cause (remedy)"},
	} {
		if got := test.err.Error(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
	if !errors.Is(&Error{Err: cause}, cause) {
		t.Error("the cause is not unwrapped")
	}
}

func TestWrapLeavesItsOwnErrorsAlone(t *testing.T) {
	t.Parallel()
	own := &Error{Code: CodeRollback, Path: "/a.db", Msg: "fault"}
	for _, err := range []error{
		nil, own, fmt.Errorf("wrapped: %w", own), context.Canceled, fmt.Errorf("wrapped: %w", context.DeadlineExceeded),
	} {
		if got := Wrap("/b.db", "testing", err); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
}

// What each of SQLite's results means to the caller of a log.
func TestSQLiteResults(t *testing.T) {
	t.Parallel()
	for result, want := range map[int]Code{
		5: CodeBusy, 6: CodeBusy, 8: CodeReadOnly, 11: CodeCorrupt, 13: CodeFull, 14: CodeReadOnly,
		19: CodeTampered, 26: CodeNotAuditLog, 1: CodeIO, 10: CodeIO,
	} {
		e := &Error{Code: CodeIO, Hint: "unchanged"}
		e.classify(result)
		if e.Code != want || e.Hint == "" || (e.Hint == "unchanged") != (want == CodeIO) {
			t.Errorf("result %d: %+v, want %v", result, e, want)
		}
	}
}

// An extended code of the driver is told by its primary one.
func TestWrapOfDriverErrors(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "a.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.Exec(`CREATE TABLE t (x INTEGER PRIMARY KEY); INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)`)
	got := Wrap("/a.db", "testing", err) // SQLITE_CONSTRAINT_PRIMARYKEY, 19 + 6<<8
	if CodeOf(got) != CodeTampered || !errors.Is(got, err) || !strings.Contains(got.Error(), "audit log /a.db: testing: ") {
		t.Errorf("got %v", got)
	}
}

func TestWrapOfFileErrors(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]Code{
		&fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}: CodeReadOnly,
		&fs.PathError{Op: "open", Path: "x", Err: syscall.EROFS}:    CodeReadOnly,
		os.ErrDeadlineExceeded: CodeIO,
		errors.New("other"):    CodeIO,
	} {
		got := Wrap("/a.db", "testing", err)
		if e, ok := errors.AsType[*Error](got); !ok || e.Code != want || e.Path != "/a.db" || e.Msg != "testing" || e.Hint == "" {
			t.Errorf("%v became %+v", err, got)
		}
	}
}

func TestCodesRoundTrip(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for code := CodeInvalid; code <= CodeUnsupported; code++ {
		text, err := code.MarshalText()
		var again Code
		if err != nil || again.UnmarshalText(text) != nil || again != code || seen[string(text)] || strings.HasPrefix(string(text), "code(") {
			t.Errorf("%d became %q, which is read as %d", uint8(code), text, uint8(again))
		}
		seen[string(text)] = true
	}
	for _, text := range []string{"", "ok", "code(1)"} {
		var code Code
		if err := code.UnmarshalText([]byte(text)); err == nil || code != 0 {
			t.Errorf("%q was read as %v", text, code)
		}
	}
	for code, want := range map[Code]string{0: "code(0)", CodeUnsupported + 1: "code(18)", CodeFull: "disk-full"} {
		if code.String() != want {
			t.Errorf("%d is %q, want %q", uint8(code), code, want)
		}
	}
}

func TestCodeOf(t *testing.T) {
	t.Parallel()
	if got := CodeOf(fmt.Errorf("wrapped: %w", Invalid("x"))); got != CodeInvalid {
		t.Errorf("got %v", got)
	}
	if CodeOf(nil) != 0 || CodeOf(errors.New("other")) != 0 {
		t.Error("a foreign error has a code")
	}
}
