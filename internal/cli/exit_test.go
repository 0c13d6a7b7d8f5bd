package cli_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/agentd/agentd/internal/cli"
)

// Wrapping an error with more context does not change how the command ends.
func TestExitCode(t *testing.T) {
	for name, test := range map[string]struct {
		err   error
		code  int
		print bool
	}{
		"success":         {nil, 0, false},
		"any error":       {fs.ErrNotExist, cli.ExitFailed, true},
		"usage":           {cli.Usage("--limit: must be positive, not %d", -1), cli.ExitUsage, true},
		"printed finding": {cli.Finding(nil), cli.ExitFinding, false},
		"finding":         {cli.Finding(fs.ErrInvalid), cli.ExitFinding, true},
		"call":            {&cli.ExitError{Code: cli.ExitCall}, cli.ExitCall, false},
		"wrapped":         {fmt.Errorf("in the fleet: %w", cli.Usage("x")), cli.ExitUsage, true},
		"joined":          {errors.Join(cli.Finding(fs.ErrInvalid), fs.ErrClosed), cli.ExitFinding, true},
	} {
		code, print := cli.ExitCode(test.err)
		if code != test.code || print != test.print {
			t.Errorf("%s: status %d, print %t; want %d, %t", name, code, print, test.code, test.print)
		}
	}
}

func TestExitErrorKeepsItsCause(t *testing.T) {
	if err := cli.Finding(fs.ErrInvalid); !errors.Is(err, fs.ErrInvalid) || err.Error() != fs.ErrInvalid.Error() {
		t.Errorf("%v", err)
	}
	if err := cli.Usage("--key: %w", fs.ErrNotExist); !errors.Is(err, fs.ErrNotExist) || err.Error() != "--key: file does not exist" {
		t.Errorf("%v", err)
	}
	if err := cli.Finding(nil); err.Error() != "exit status 3" {
		t.Errorf("%v", err)
	}
}
