package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/proof"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
)

// A ProveRequest is one `agentd audit prove`.
type ProveRequest struct {
	Logs Choice
	// Seq is the number of the record, as the user gave it.
	Seq string
	// Out is the new file to write; "" is standard output.
	Out string
	// WithoutContent leaves out what the record says.
	WithoutContent bool
}

// Prove writes a proof that one record is in a log.
func Prove(ctx context.Context, env *cli.Env, r ProveRequest) error {
	seq, err := strconv.ParseInt(r.Seq, 10, 64)
	if err != nil || seq < 1 {
		return cli.Usage("%q is no record number: `agentd audit query` shows them", r.Seq)
	}
	return withOneLog(ctx, env, r.Logs, func(log Log) error {
		p, err := log.Prove(ctx, seq, auditchain.ProveOptions{WithoutContent: r.WithoutContent})
		if err != nil {
			return err
		}
		return writeProof(env, p, r.Out)
	})
}

// writeProof writes to standard output, or to a file that must not exist yet: a
// proof is evidence, and overwriting one by accident would lose it.
func writeProof(env *cli.Env, p *proof.Proof, out string) error {
	format := env.Format
	if format == output.Table {
		format = output.JSON // a proof has no other form
	}
	var text bytes.Buffer
	if err := output.WriteJSON(&text, format, p); err != nil {
		return err
	}
	if out == "" {
		_, err := env.Stdout.Write(text.Bytes())
		return err
	}
	file, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	// The error of Close counts: on some file systems it is the only sign that the
	// data did not reach the disk.
	_, err = file.Write(text.Bytes())
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	fmt.Fprintf(env.Stderr, "record %d is proven in %s; check it with `agentd audit verify-proof %s --key <the log's .pub file>`\n", p.Record.Seq, out, out)
	return nil
}
