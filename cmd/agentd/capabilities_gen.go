package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/codegen"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/output"
)

// capabilitiesGen are the flags of `capabilities gen`.
type capabilitiesGen struct {
	peer, file string
	lang, out  string
	check      bool
	json       bool
}

// capabilitiesGenResult is what the command has to say.
type capabilitiesGenResult struct {
	Peer         string   `json:"peer"`
	Capabilities []string `json:"capabilities"`
	OutFile      string   `json:"outFile"`
	Language     string   `json:"language"`
	Digest       string   `json:"digest"`
	// UpToDate is what --check found.
	UpToDate *bool `json:"upToDate,omitempty"`
}

func (a *app) capabilitiesGenCommand() *cobra.Command {
	var names []string
	for _, l := range codegen.Languages() {
		names = append(names, l.Name)
	}
	var flags capabilitiesGen
	cmd := &cobra.Command{
		Use: "gen", Short: "Write a typed client for a peer's capabilities", Args: cobra.NoArgs,
		Long: "Writes a typed client for the capabilities of one agent. The same capabilities give the\n" +
			"same bytes everywhere, so that the file can be kept under version control; --check writes\n" +
			"nothing and exits with 3 when the file differs from what would be written.",
		Example: "  agentd capabilities gen --peer pr-reviewer\n" +
			"  agentd capabilities gen --capabilities vendor/reviewer.yaml --lang go --out internal/peers --check",
		RunE: a.do(func(context.Context, []string) error { return a.generateClient(flags) }),
	}
	f := cmd.Flags()
	f.StringVar(&flags.peer, "peer", "", "id of a member of the fleet")
	f.StringVar(&flags.file, "capabilities", "", "capabilities file of any agent")
	f.StringVar(&flags.lang, "lang", names[0], strings.Join(names, ", "))
	f.StringVar(&flags.out, "out", "generated", "folder to write below")
	f.BoolVar(&flags.check, "check", false, "write nothing; exit with 3 when the file differs")
	f.BoolVar(&flags.json, "json", false, "the same as -o json")
	return cmd
}

func (a *app) generateClient(flags capabilitiesGen) error {
	if (flags.peer == "") == (flags.file == "") {
		return usage("name either --peer <id> or --capabilities <path>")
	}
	lang, err := codegen.Find(flags.lang)
	if err != nil {
		return usage("--lang: %s", strings.TrimPrefix(err.Error(), "codegen: "))
	}
	doc, err := a.capabilitiesToGenerate(flags)
	if err != nil {
		return err
	}
	api, err := codegen.NewAPI(doc)
	if err != nil {
		return err
	}
	out, err := filepath.Abs(flags.out)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	file, id := lang.Generate(api), doc.Agent.ID()
	result := capabilitiesGenResult{
		Peer: id, Capabilities: doc.Names(), OutFile: file.In(out), Language: lang.Name, Digest: doc.Digest(),
	}
	if flags.json && a.output == output.Table {
		a.output = output.JSON
	}
	if flags.check {
		return a.checkClient(file, out, id, result)
	}
	if err := file.Write(out, id); err != nil {
		return err
	}
	return a.sayGenerated("wrote", result)
}

// checkClient compares, and says what it found.
func (a *app) checkClient(file codegen.File, out, id string, result capabilitiesGenResult) error {
	err := file.Check(out, id)
	var stale *codegen.StaleError
	if err != nil && !errors.As(err, &stale) {
		return err
	}
	upToDate := err == nil
	result.UpToDate = &upToDate
	switch {
	case upToDate:
		return a.sayGenerated("up to date:", result)
	case a.output != output.Table:
		if err := a.sayGenerated("", result); err != nil {
			return err
		}
		return &exitError{code: exitFinding}
	}
	return &exitError{code: exitFinding, err: err}
}

func (a *app) sayGenerated(what string, r capabilitiesGenResult) error {
	if a.output != output.Table {
		return output.WriteJSON(a.stdout, a.output, r)
	}
	noun := "capabilities"
	if len(r.Capabilities) == 1 {
		noun = "capability"
	}
	_, err := fmt.Fprintf(a.stdout, "✓ %s %s (%d %s)\n", what, output.Printable(r.OutFile), len(r.Capabilities), noun)
	return err
}

// capabilitiesToGenerate loads the file that the flags name.
func (a *app) capabilitiesToGenerate(flags capabilitiesGen) (*capability.Document, error) {
	path := flags.file
	opts := loadOptions()
	if flags.peer != "" {
		id := strings.TrimPrefix(flags.peer, "agent://")
		if err := envelope.CheckID(id); err != nil {
			return nil, usage("--peer: %s", err)
		}
		dir, err := a.memberDir(id)
		if err != nil {
			return nil, err
		}
		opts.Agent = envelope.AddressOf(id)
		found, ok := capability.Find(dir)
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

// memberDir is the folder of a member: where fleet.yaml says, or agents/<id>
// where that file is of no help, since a fault elsewhere in the fleet is no
// reason not to write a client.
func (a *app) memberDir(id string) (string, error) {
	root, err := a.fleetRoot()
	if err != nil {
		return "", err
	}
	if f, err := fleet.Load(root, fleet.LoadOptions{InspectOnly: true}); err == nil {
		if m, ok := f.Member(id); ok {
			return m.Dir, nil
		}
	}
	return filepath.Join(root, "agents", id), nil
}
