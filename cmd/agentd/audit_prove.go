package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/proof"
	"github.com/agentd/agentd/internal/output"
)

func (a *app) auditProveCommand() *cobra.Command {
	var choice logChoice
	var out string
	var opts auditchain.ProveOptions
	cmd := &cobra.Command{
		Use:   "prove <seq>",
		Short: "Make a file that proves one record to somebody without the log",
		Long: "Make a file that proves that one record is in a log, under a signed checkpoint, and shows\n" +
			"no other record. `agentd audit verify-proof` checks it offline, with the log's public key\n" +
			"alone. A record can be proven some seconds after it was written, when it is signed.",
		Example: "  agentd audit prove 17 --agent reviewer --out proof.json\n" +
			"  agentd audit prove 17 --db audit.db --without-content > proof.json",
		Args: cobra.ExactArgs(1),
		RunE: a.do(func(ctx context.Context, args []string) error {
			seq, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || seq < 1 {
				return usage("%q is no record number: take it from `agentd audit query`", args[0])
			}
			return a.openLog(ctx, choice, func(log namedLog) error {
				p, err := log.Prove(ctx, seq, opts)
				if err != nil {
					return err
				}
				return a.writeProof(p, out)
			})
		}),
	}
	choice.register(cmd)
	cmd.Flags().StringVar(&out, "out", "", "write to this new file instead of standard output")
	cmd.Flags().BoolVar(&opts.WithoutContent, "without-content", false, "show number, time, tenant and kind only, not what the record says")
	return cmd
}

// writeProof writes to standard output, or to a file that does not exist yet.
func (a *app) writeProof(p *proof.Proof, out string) error {
	format := a.output
	if format == output.Table {
		format = output.JSON // a proof has no other form
	}
	var text bytes.Buffer
	if err := output.WriteJSON(&text, format, p); err != nil {
		return err
	}
	if out == "" {
		_, err := a.stdout.Write(text.Bytes())
		return err
	}
	file, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text.Bytes())
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stderr, "record %d is proven in %s; check it with `agentd audit verify-proof %s --key <the log's .pub file>`\n", p.Record.Seq, out, out)
	return nil
}
