package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/output"
)

// verifyFlags are the flags of `agentd audit verify`.
type verifyFlags struct {
	logs                         logChoice
	keys, checkpoints, witnesses []string
	agents                       []envelope.Address // the witnesses that are agents
	fromCheckpoint               bool
	tenant                       string
}

func (a *app) auditVerifyCommand() *cobra.Command {
	var flags verifyFlags
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Recompute every hash of the logs; exit status 3 when a chain is broken",
		Long: "Recompute every hash of the logs, and hold the result against every signed state. The\n" +
			"exit status is 3 when a chain is broken; the first bad record and the class of the fault\n" +
			"are named.\n\n" +
			"On its own, verify trusts the public keys and the checkpoint beside the database. Whoever\n" +
			"holds all these files could rewrite them together: that is found with what was kept\n" +
			"elsewhere, given as --key, --checkpoint or --witness.",
		Example: "  agentd audit verify\n" +
			"  agentd audit verify --agent reviewer --from-checkpoint\n" +
			"  agentd audit verify --agent reviewer --witness agent://librarian\n" +
			"  agentd audit verify --db copy.db --key reviewer.pub --checkpoint friday.checkpoint",
		Args: cobra.NoArgs,
		RunE: a.do(func(ctx context.Context, _ []string) error {
			opts, err := flags.options()
			if err != nil {
				return err
			}
			err = a.openLogs(ctx, flags.logs, func(logs []namedLog) error { return a.verifyLogsWith(ctx, logs, opts, flags.agents...) })
			if code := auditchain.CodeOf(err); code == auditchain.CodeTampered || code == auditchain.CodeCorrupt {
				return &exitError{code: exitFinding, err: err} // too broken to be read at all
			}
			return err
		}),
	}
	flags.logs.register(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&flags.keys, "key", nil, "trust this verifier key, or those in this file (default: those in the .pub file beside the database)")
	f.StringArrayVar(&flags.checkpoints, "checkpoint", nil, "the log must have grown from the signed checkpoint in this file")
	f.StringArrayVar(&flags.witnesses, "witness", nil, "the log must have grown from what a witness keeps of it: a running agent, agent://<id>, or the folder of one")
	f.BoolVar(&flags.fromCheckpoint, "from-checkpoint", false, "take what is under the newest checkpoint as verified, check the rest only")
	f.StringVar(&flags.tenant, "tenant", "", "also count the records of this tenant; the chain runs through all of them")
	return cmd
}

func (v *verifyFlags) options() (auditchain.VerifyOptions, error) {
	opts := auditchain.VerifyOptions{FromCheckpoint: v.fromCheckpoint, Tenant: v.tenant}
	var err error
	if opts.TrustedKeys, err = readKeys(v.keys); err != nil {
		return opts, err
	}
	for _, name := range v.checkpoints {
		text, err := readFile(name, checkpoint.MaxBytes)
		if err != nil {
			return opts, fmt.Errorf("--checkpoint: %w", err)
		}
		opts.Checkpoints = append(opts.Checkpoints, text)
	}
	v.agents = nil
	for _, name := range v.witnesses {
		if strings.HasPrefix(name, "agent://") {
			address, err := envelope.ParseAddress(name)
			if err != nil {
				return opts, usage("--witness: %v", err)
			}
			v.agents = append(v.agents, address)
			continue
		}
		info, err := os.Stat(name)
		if err == nil && !info.IsDir() {
			return opts, usage("--witness: %s is a file: give the folder in which a witness keeps its checkpoints, or the file as --checkpoint", name)
		}
		if err != nil {
			return opts, fmt.Errorf("--witness: %w", err)
		}
		store, err := checkpoint.NewFolderStore(name)
		if err != nil {
			return opts, fmt.Errorf("--witness: %w", err)
		}
		opts.Witnesses = append(opts.Witnesses, folderWitness{name, store})
	}
	return opts, nil
}

// readKeys reads verifier keys, each given as such or as a file of some.
func readKeys(values []string) ([]string, error) {
	const maxKeyFile = 1 << 20
	var keys []string
	for _, value := range values {
		if _, err := checkpoint.NewKeys(value); err == nil {
			keys = append(keys, value)
			continue
		}
		text, err := readFile(value, maxKeyFile)
		if errors.Is(err, os.ErrNotExist) {
			return nil, usage("--key: %q is neither a verifier key, <name>+<hash>+<base64>, nor a file", value)
		}
		if err != nil {
			return nil, fmt.Errorf("--key: %w", err)
		}
		own := strings.Fields(string(text))
		if _, err := checkpoint.NewKeys(own...); err != nil || len(own) == 0 {
			return nil, fmt.Errorf("--key: %s is no file of verifier keys: give the .pub file of a log", value)
		}
		keys = append(keys, own...)
	}
	return keys, nil
}

// readFile reads a file that has at most so many bytes.
func readFile(name string, most int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", name, most)
	}
	return text, errors.Join(err, file.Close())
}

// A folderWitness is what a witness keeps of logs in a folder. It can tell, but
// not sign.
type folderWitness struct {
	folder string
	store  *checkpoint.FolderStore
}

func (w folderWitness) Name() string { return w.folder }

func (w folderWitness) Latest(ctx context.Context, origin string) ([]byte, error) {
	return w.store.Load(ctx, origin)
}

func (w folderWitness) Cosign(context.Context, []byte, int64, tlog.TreeProof) ([]byte, error) {
	return nil, errors.New("the folder of a witness cannot sign")
}

// A verified log is one line of the answer.
type verifiedLog struct {
	Agent string `json:"agent"`
	OK    bool   `json:"ok"`
	*auditchain.Report
}

func (a *app) verifyLogs(ctx context.Context, logs []namedLog) error {
	return a.verifyLogsWith(ctx, logs, auditchain.VerifyOptions{})
}

func (a *app) verifyLogsWith(ctx context.Context, logs []namedLog, opts auditchain.VerifyOptions, agents ...envelope.Address) error {
	var all []verifiedLog
	broken := false
	for _, l := range logs {
		own := opts
		for _, address := range agents {
			witness, err := a.agentWitness(address, l)
			if err != nil {
				return err
			}
			own.Witnesses = append(slices.Clip(own.Witnesses), witness)
		}
		report, err := l.Verify(ctx, own)
		if err != nil {
			return err
		}
		all = append(all, verifiedLog{Agent: l.agent, OK: report.OK(), Report: report})
		broken = broken || !report.OK()
	}
	if err := a.writeVerified(all, opts.Tenant); err != nil {
		return err
	}
	if broken {
		return &exitError{code: exitFinding}
	}
	return nil
}

func (a *app) writeVerified(all []verifiedLog, tenant string) error {
	if a.output != output.Table {
		return writeList(a, all)
	}
	colors := output.ColorsFor(a.stdout, a.getenv)
	for _, v := range all {
		if v.OK {
			fmt.Fprintf(a.stdout, "%s %s: chain intact — %s\n", colors.Good("✓"), v.Agent, v.summary(tenant))
			continue
		}
		fmt.Fprintf(a.stdout, "%s %s: chain verification failed%s: %d faults\n", colors.Bad("✗"), v.Agent, v.firstBad(), v.FaultCount)
		for _, f := range v.Faults {
			fmt.Fprintf(a.stdout, "    %s\n", output.Printable(f.String()))
		}
		if more := v.FaultCount - int64(len(v.Faults)); more > 0 {
			fmt.Fprintf(a.stdout, "    … %d more\n", more)
		}
	}
	return nil
}

// summary is what a good report says.
func (v *verifiedLog) summary(tenant string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d records verified", v.Records)
	if begin := v.Last - v.Records - v.Pruned; begin > 0 { // from a checkpoint on
		fmt.Fprintf(&b, " after number %d", begin)
	}
	fmt.Fprintf(&b, ", %d of them under a signed checkpoint", max(0, v.Records-v.Unsigned()))
	if tenant != "" {
		fmt.Fprintf(&b, ", %d of tenant %q", v.Tenant, tenant)
	}
	if v.Erased > 0 {
		fmt.Fprintf(&b, ", %d erased", v.Erased)
	}
	if v.Pruned > 0 {
		fmt.Fprintf(&b, ", %d more pruned", v.Pruned)
	}
	for _, name := range v.Witnesses {
		fmt.Fprintf(&b, ", confirmed by witness %s", name)
	}
	return b.String()
}

// firstBad names the first record that is bad, where one is to blame.
func (v *verifiedLog) firstBad() string {
	for _, f := range v.Faults {
		if f.Seq > 0 {
			return fmt.Sprintf(" at record %d (%s)", f.Seq, f.Class)
		}
	}
	return fmt.Sprintf(" (%s)", v.Faults[0].Class)
}

// writeList writes values as -o json or jsonl wants them.
func writeList[T any](a *app, all []T) error {
	if a.output == output.JSON {
		return output.WriteJSON(a.stdout, a.output, all)
	}
	for i := range all {
		if err := output.WriteJSON(a.stdout, a.output, all[i]); err != nil {
			return err
		}
	}
	return nil
}
