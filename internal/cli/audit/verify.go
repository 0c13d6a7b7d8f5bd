package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
)

// A VerifyRequest is one `agentd audit verify`.
type VerifyRequest struct {
	Logs Choice
	// Keys are verifier keys or files of them; none means the .pub file of each log.
	Keys []string
	// Checkpoints are files with signed checkpoints of the log.
	Checkpoints []string
	// Witnesses are agent://<id>, or folders in which a witness keeps checkpoints.
	Witnesses []string
	// WitnessKeys are the witnesses' verifier keys, or files of them, besides those that
	// the log's agent.yaml pins and those of members on this machine.
	WitnessKeys []string
	// Quorum is how many witnesses must confirm; 0 means what agent.yaml says, or all.
	Quorum int
	// FromCheckpoint trusts what the newest checkpoint covers.
	FromCheckpoint bool
	// Continue goes on where an earlier verification was stopped.
	Continue bool
	// Tenant is the tenant whose records to count; "" counts none.
	Tenant string
}

// Verify recomputes the hash chain of each chosen log, and prints a verdict on
// each. The error is a finding when a chain is broken.
func Verify(ctx context.Context, env *cli.Env, r VerifyRequest) error {
	opts := auditchain.VerifyOptions{FromCheckpoint: r.FromCheckpoint, Tenant: r.Tenant}
	var err error
	if opts.TrustedKeys, err = readKeys("--key", r.Keys); err != nil {
		return err
	}
	if opts.WitnessKeys, err = readKeys("--witness-key", r.WitnessKeys); err != nil {
		return err
	}
	opts.Quorum = r.Quorum
	if r.Quorum < 0 || r.Quorum > len(r.Witnesses) {
		return cli.Usage("--quorum: %d of %d witnesses cannot confirm", r.Quorum, len(r.Witnesses))
	}
	for _, name := range r.Checkpoints {
		text, err := cli.ReadFile(name, checkpoint.MaxBytes)
		if err != nil {
			return fmt.Errorf("--checkpoint: %w", err)
		}
		opts.Checkpoints = append(opts.Checkpoints, text)
	}
	witnesses, err := parseWitnesses(env, r.Witnesses)
	if err != nil {
		return err
	}
	err = withLogs(ctx, env, r.Logs, func(logs []Log) error { return verify(ctx, env, logs, opts, witnesses, r.Continue) })
	if altered, ok := errors.AsType[*auditchain.Error](err); ok && altered.Code == auditchain.CodeTampered {
		// A log that cannot be opened, for want of what the rest hangs on.
		report := &auditchain.Report{Keys: []string{}, Faults: []auditchain.Fault{{Class: auditchain.FaultSchemaAltered, Detail: altered.Msg}}, FaultCount: 1}
		werr := writeVerified(env, []verifiedLog{{Agent: altered.Path, Report: report}}, "")
		return cli.Finding(errors.Join(err, werr))
	}
	if auditchain.CodeOf(err) == auditchain.CodeCorrupt {
		return cli.Finding(err) // the file is too damaged to be read to its end
	}
	return err
}

// A verifiedLog is the verdict on one log.
type verifiedLog struct {
	Agent string `json:"agent"`
	OK    bool   `json:"ok"`
	*auditchain.Report
}

// verify checks the logs one after another and prints the verdicts together, so
// that a broken first log does not hide the state of the others.
func verify(ctx context.Context, env *cli.Env, logs []Log, opts auditchain.VerifyOptions, witnesses []witness, goOn bool) error {
	var all []verifiedLog
	broken := false
	for _, l := range logs {
		own := opts
		for _, w := range witnesses {
			connected, err := w.forLog(env, l)
			if err != nil {
				return err
			}
			// Clip makes append copy: the logs must not share the array of opts.
			own.Witnesses = append(slices.Clip(own.Witnesses), connected)
		}
		if len(witnesses) > 0 {
			if err := pinWitnesses(env, l, witnesses, &own); err != nil {
				return err
			}
		}
		report, err := verifyOne(ctx, env, l, own, goOn)
		if err != nil {
			return err
		}
		all = append(all, verifiedLog{Agent: l.Agent, OK: report.OK(), Report: report})
		broken = broken || !report.OK()
	}
	if err := writeVerified(env, all, opts.Tenant); err != nil {
		return err
	}
	if broken {
		return cli.Finding(nil)
	}
	return nil
}

// writeVerified prints one verdict for each log, with the faults of a broken one
// below it.
func writeVerified(env *cli.Env, all []verifiedLog, tenant string) error {
	if env.Format != output.Table {
		return cli.WriteList(env, all)
	}
	colors := env.Colors()
	for _, v := range all {
		if v.OK {
			fmt.Fprintf(env.Stdout, "%s %s: chain intact — %s\n", colors.Good("✓"), v.Agent, v.summary(tenant))
			continue
		}
		fmt.Fprintf(env.Stdout, "%s %s: chain verification failed%s: %d faults\n", colors.Bad("✗"), v.Agent, v.firstFault(), v.FaultCount)
		for _, f := range v.Faults {
			fmt.Fprintf(env.Stdout, "    %s\n", output.Printable(f.String()))
		}
		// The report keeps only the first faults; the count covers all of them.
		if more := v.FaultCount - int64(len(v.Faults)); more > 0 {
			fmt.Fprintf(env.Stdout, "    … %d more\n", more)
		}
	}
	return nil
}

// summary describes an intact log.
func (v *verifiedLog) summary(tenant string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d records verified", v.Records)
	if v.Continued > 0 {
		fmt.Fprintf(&b, " (those up to number %d by the run that was stopped: they were not read again)", v.Continued)
	}
	if start := v.Last - v.Records - v.Pruned; start > 0 && v.Continued == 0 { // with --from-checkpoint
		fmt.Fprintf(&b, " after number %d", start)
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
	for _, name := range v.WitnessesUnpinned {
		fmt.Fprintf(&b, ", confirmed by witness %s under a key that nobody has pinned (--witness-key)", name)
	}
	for _, name := range v.WitnessesSilent {
		fmt.Fprintf(&b, ", not by %s", name)
	}
	return b.String()
}

// firstFault names the first bad record and the class of its fault. Some faults,
// such as a missing tail, have a class and no record.
func (v *verifiedLog) firstFault() string {
	for _, f := range v.Faults {
		if f.Seq > 0 {
			return fmt.Sprintf(" at record %d (%s)", f.Seq, f.Class)
		}
	}
	return fmt.Sprintf(" (%s)", v.Faults[0].Class)
}
