package capabilities

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/codegen"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
)

// A GenRequest is one `agentd capabilities gen`. Exactly one of Peer and File is set.
type GenRequest struct {
	// Peer is the id or address of a member.
	Peer string
	// File is the path of a capabilities file.
	File string
	// Lang is the name of a language of [codegen.Languages].
	Lang string
	// Out is the folder to write below.
	Out string
	// Standalone writes a client that needs no kit.
	Standalone bool
	// Server writes a skill to be filled in as well, unless there is one.
	Server bool
	// Check compares instead of writing.
	Check bool
	// JSON prints the result as JSON, whatever the format of the environment.
	JSON bool
}

// genResult is what -o json prints.
type genResult struct {
	Peer         string   `json:"peer"`
	Capabilities []string `json:"capabilities"`
	OutFile      string   `json:"outFile"`
	Language     string   `json:"language"`
	Digest       string   `json:"digest"`
	// ServerFile is the skill to be filled in, with Server. ServerKept is set where there
	// was one already.
	ServerFile string `json:"serverFile,omitempty"`
	ServerKept bool   `json:"serverKept,omitempty"`
	// UpToDate is the verdict of --check, and absent without it.
	UpToDate *bool `json:"upToDate,omitempty"`
}

// Languages returns the names of the languages, the default first.
func Languages() []string {
	var names []string
	for _, l := range codegen.Languages() {
		names = append(names, l.Name)
	}
	return names
}

// Gen writes a typed client for an agent's capabilities, or with Check compares
// the client that is there. The error is a finding when it differs.
func Gen(env *cli.Env, r GenRequest) error {
	if (r.Peer == "") == (r.File == "") {
		return cli.Usage("give either --peer <id> or --capabilities <path>")
	}
	if r.Server && r.Check {
		return cli.Usage("--check judges generated files, and what --server writes is its author's")
	}
	if r.JSON && env.Format == output.Table {
		// A copy: the environment belongs to the caller, and --json concerns this
		// command alone.
		own := *env
		own.Format, env = output.JSON, &own
	}
	lang, err := codegen.Find(r.Lang)
	if err != nil {
		return cli.Usage("--lang: %s", strings.TrimPrefix(err.Error(), "codegen: "))
	}
	if r.Standalone {
		lang = lang.Standalone()
	}
	doc, err := r.load(env)
	if err != nil {
		return err
	}
	api, err := codegen.NewAPI(doc)
	if err != nil {
		return err
	}
	out := cmp.Or(r.Out, ".")
	file, id := lang.Generate(api), doc.Agent.ID()
	result := genResult{
		Peer: id, Capabilities: doc.Names(), OutFile: below(out, file.Path), Language: lang.Name, Digest: doc.Digest(),
	}
	if r.Check {
		return result.check(env, file.Check(out, id))
	}
	imports := ""
	if r.Server && lang.Name == "go" {
		if imports, err = importPath(out); err != nil {
			return err
		}
	}
	if err := file.Write(out, id); err != nil {
		return err
	}
	if r.Server {
		server := lang.Server(api, imports)
		written, err := server.WriteNew(out)
		if err != nil {
			return err
		}
		result.ServerFile, result.ServerKept = below(out, server.Path), !written
	}
	return result.write(env, "wrote")
}

// below is the path of a file in a folder, with the folder as it was given, so that what
// is printed can be used where that was given.
func below(dir, path string) string {
	return strings.TrimRight(dir, string(filepath.Separator)) + string(filepath.Separator) + filepath.FromSlash(path)
}

// importPath is that of a folder by the go.mod around it.
func importPath(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("--out: %w", err)
	}
	for root := dir; ; root = filepath.Dir(root) {
		text, err := os.ReadFile(filepath.Join(root, "go.mod"))
		if module := modfile.ModulePath(text); err == nil && module != "" {
			rel, err := filepath.Rel(root, dir)
			return path.Join(module, filepath.ToSlash(rel)), err
		}
		if root == filepath.Dir(root) {
			return "", cli.Usage("--server: no go.mod around %s says what to import: run go mod init there", dir)
		}
	}
}

// check prints the verdict of --check, whose error is err. A stale file is a
// finding: in a table its error is the message, in JSON the member upToDate.
func (r genResult) check(env *cli.Env, err error) error {
	if _, stale := errors.AsType[*codegen.StaleError](err); err != nil && !stale {
		return err
	}
	upToDate := err == nil
	r.UpToDate = &upToDate
	switch {
	case upToDate:
		return r.write(env, "up to date:")
	case env.Format != output.Table:
		if err := r.write(env, ""); err != nil {
			return err
		}
		return cli.Finding(nil)
	}
	return cli.Finding(err)
}

// write prints the result, in a table as one sentence that begins with verb.
func (r genResult) write(env *cli.Env, verb string) error {
	if env.Format != output.Table {
		return env.WriteJSON(r)
	}
	noun := "capabilities"
	if len(r.Capabilities) == 1 {
		noun = "capability"
	}
	_, err := fmt.Fprintf(env.Stdout, "✓ %s %s (%d %s)\n", verb, output.Printable(r.OutFile), len(r.Capabilities), noun)
	if err != nil || r.ServerFile == "" {
		return err
	}
	did := "wrote " + output.Printable(r.ServerFile) + ", whose functions are to be written"
	if r.ServerKept {
		did = "kept " + output.Printable(r.ServerFile)
	}
	_, err = fmt.Fprintf(env.Stdout, "✓ %s\n", did)
	return err
}

// load loads the capabilities file that the flags select.
func (r *GenRequest) load(env *cli.Env) (*capability.Document, error) {
	path := r.File
	opts := cli.FileOptions()
	if r.Peer != "" {
		id := strings.TrimPrefix(r.Peer, "agent://")
		if err := envelope.CheckID(id); err != nil {
			return nil, cli.Usage("--peer: %s", err)
		}
		dir, err := memberDir(env, id)
		if err != nil {
			return nil, err
		}
		opts.Agent = envelope.AddressOf(id)
		found, ok := capability.Find(dir)
		// Nothing found: let the error of loading name the file that the user most
		// likely meant.
		if path = found; !ok {
			path = filepath.Join(dir, "capabilities.yaml")
		}
	}
	doc, err := capability.LoadWith(path, opts)
	if errors.Is(err, fs.ErrNotExist) {
		abs, aerr := filepath.Abs(path)
		if aerr != nil {
			abs = path
		}
		return nil, fmt.Errorf("capabilities-gen: cannot read %s: no such file", abs)
	}
	return doc, err
}

// memberDir returns the folder of a member: the one that fleet.yaml names, or
// agents/<id> when the fleet cannot be loaded. A fault elsewhere in the fleet
// must not keep anybody from generating a client.
func memberDir(env *cli.Env, id string) (string, error) {
	root, err := env.FleetRoot()
	if err != nil {
		return "", err
	}
	if f, err := fleet.Load(root, cli.FleetOptions(fleet.LoadOptions{InspectOnly: true})); err == nil {
		if m, ok := f.Member(id); ok {
			return m.Dir, nil
		}
	}
	return filepath.Join(root, "agents", id), nil
}
