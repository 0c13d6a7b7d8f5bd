package capabilities

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/capability/compat"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/internal/progress"
)

// A DiffRequest is one `agentd capabilities diff`.
type DiffRequest struct {
	// Files are the old and the new file, or with Against the new one alone.
	Files []string
	// Against takes the old file from git: git:<ref>.
	Against string
	// Direction is request, response or both.
	Direction string
	// PinWords makes changed descriptions breaking.
	PinWords bool
	// Format is text, json, sarif or junit.
	Format string
}

// Diff compares two versions of a capabilities file. The error is a finding when
// the new one breaks callers that were built against the old one.
func Diff(ctx context.Context, env *cli.Env, r DiffRequest) error {
	old, new, err := r.load(ctx)
	if err != nil {
		return err
	}
	direction := compat.Direction(r.Direction)
	switch direction {
	case compat.Both, compat.Request, compat.Response:
	default:
		return cli.Usage("--direction: must be request, response or both, not %q", r.Direction)
	}
	comparing, end := comparing(env, filepath.Base(new.Path))
	report := compat.CompareWith(old.Published(), new.Published(), compat.Options{Direction: direction, Progress: comparing})
	end()
	return writeCompat(env, report, r.PinWords, r.Format, new.Path)
}

// comparing shows how far a comparison with a file has come. The caller ends it before it prints
// anything.
func comparing(env *cli.Env, file string) (watch func(done, total int), end func()) {
	line := progress.New(env.Stderr, env.Getenv, "comparing "+output.Printable(file), "capabilities")
	return func(done, total int) { line.Set(int64(done), int64(total)) }, line.End
}

// load loads the old and the new document. Of two files it reports the faults of
// both at once.
func (r *DiffRequest) load(ctx context.Context) (old, new *capability.Document, err error) {
	if r.Against == "" {
		if len(r.Files) != 2 {
			return nil, nil, cli.Usage("diff needs two files, or one and --against git:<ref>")
		}
		old, errOld := capability.LoadWith(r.Files[0], cli.FileOptions())
		new, errNew := capability.LoadWith(r.Files[1], cli.FileOptions())
		return old, new, errors.Join(errOld, errNew)
	}
	ref, ok := strings.CutPrefix(r.Against, "git:")
	if !ok || ref == "" || len(r.Files) != 1 {
		return nil, nil, cli.Usage("--against: must be git:<ref> with one file, not %q with %d", r.Against, len(r.Files))
	}
	if new, err = capability.LoadWith(r.Files[0], cli.FileOptions()); err != nil {
		return nil, nil, err
	}
	old, err = loadFromGit(ctx, ref, r.Files[0])
	return old, new, err
}

// loadFromGit loads a file as it was at ref. It runs git in the file's own
// folder, so that the file may be in another repository than the user.
func loadFromGit(ctx context.Context, ref, path string) (*capability.Document, error) {
	if strings.HasPrefix(ref, "-") { // git would read it as an option
		return nil, cli.Usage("--against: %q is no ref", ref)
	}
	var stdout, stderr bytes.Buffer
	// "./" makes git take the path as relative to cmd.Dir instead of to the root of
	// the repository.
	cmd := exec.CommandContext(ctx, "git", "show", ref+":./"+filepath.ToSlash(filepath.Base(path)))
	cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Dir(path), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("git show %s:%s: %w: %s", ref, path, err, strings.TrimSpace(stderr.String()))
	}
	return capability.Parse(ref+":"+path, stdout.Bytes(), cli.FileOptions())
}

// writeCompat writes a report in a format of its own kind of -o. uri names the
// changed file in SARIF. The error is a finding when callers break.
func writeCompat(env *cli.Env, report *compat.Report, pinWords bool, format, uri string) (err error) {
	if pinWords {
		report.RefuseWords()
	}
	switch format {
	case "text", "table":
		err = report.WriteText(env.Stdout, env.Colors())
	case "json", "jsonl":
		err = report.WriteJSON(env.Stdout, output.Format(format))
	case "sarif":
		err = report.WriteSARIF(env.Stdout, uri, cli.Version())
	case "junit":
		err = report.WriteJUnit(env.Stdout)
	default:
		return cli.Usage("--output: must be text, json, sarif or junit, not %q", format)
	}
	if err == nil && report.Breaking() {
		err = cli.Finding(nil)
	}
	return err
}
