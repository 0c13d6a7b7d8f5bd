package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/proof"
	"github.com/agentd/agentd/internal/output"
)

func (a *app) auditVerifyProofCommand() *cobra.Command {
	var keys []string
	cmd := &cobra.Command{
		Use:   "verify-proof <file> --key <key or file>",
		Short: "Check a proof offline; exit status 3 when it is false",
		Long: "Check a proof that `agentd audit prove` made. It needs the log's public key, and neither\n" +
			"the log nor the fleet nor a network. A proof shows what the holder of the key has signed:\n" +
			"take the key from somebody that you trust, not from whoever gave you the proof.",
		Example: "  agentd audit verify-proof proof.json --key reviewer.pub\n" +
			"  cat proof.json | agentd audit verify-proof - --key 'agentd.audit/reviewer/3f9a0c52+0acb1d2e+AYE…'",
		Args: cobra.ExactArgs(1),
		RunE: a.do(func(_ context.Context, args []string) error {
			texts, err := readKeys(keys)
			if err != nil {
				return err
			}
			trusted, err := checkpoint.NewKeys(texts...)
			if err != nil {
				return err
			}
			text, err := a.readProof(args[0])
			if err != nil {
				return err
			}
			return a.checkProof(args[0], text, trusted)
		}),
	}
	cmd.Flags().StringArrayVar(&keys, "key", nil, "trust this verifier key, or those in this file (required)")
	_ = cmd.MarkFlagRequired("key") // fails only for a flag that does not exist
	return cmd
}

func (a *app) readProof(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(a.stdin, proof.MaxBytes+1))
	}
	return readFile(name, proof.MaxBytes)
}

// A checkedProof is the answer to `agentd audit verify-proof`.
type checkedProof struct {
	OK bool `json:"ok"`
	// Error says why a proof is bad; a bad one has nothing else.
	Error        string         `json:"error,omitempty"`
	Origin       string         `json:"origin,omitempty"`
	Seq          int64          `json:"seq,omitempty"`
	Time         time.Time      `json:"time,omitzero"`
	Tenant       string         `json:"tenant,omitempty"`
	Kind         string         `json:"kind,omitempty"`
	Hash         string         `json:"hash,omitempty"`
	Size         int64          `json:"size,omitempty"`
	Key          string         `json:"key,omitempty"`
	ContentShown bool           `json:"contentShown"`
	Content      *proof.Content `json:"content,omitempty"`
}

func (a *app) checkProof(name string, text []byte, trusted *checkpoint.Keys) error {
	p, err := proof.Parse(text)
	var result *proof.Result
	if err == nil {
		result, err = p.Verify(trusted)
	}
	checked := checkedProof{OK: err == nil}
	if err != nil {
		checked.Error = err.Error()
	} else {
		checked = checkedProof{
			OK: true, Origin: result.Origin, Seq: p.Record.Seq, Time: result.Time, Tenant: p.Record.Tenant, Kind: p.Record.Kind,
			Hash: fmt.Sprintf("%x", result.Hash[:]), Size: result.Size, Key: result.Key,
			ContentShown: result.ContentShown, Content: p.Record.Content,
		}
	}
	if werr := a.writeChecked(name, &checked); werr != nil {
		return werr
	}
	if err != nil {
		return &exitError{code: exitFinding}
	}
	return nil
}

func (a *app) writeChecked(name string, c *checkedProof) error {
	if a.output != output.Table {
		return output.WriteJSON(a.stdout, a.output, c)
	}
	colors := output.ColorsFor(a.stdout, a.getenv)
	if !c.OK {
		fmt.Fprintf(a.stdout, "%s %s: %s\n", colors.Bad("✗"), name, output.Printable(c.Error))
		return nil
	}
	fmt.Fprintf(a.stdout, "%s %s: record %d of %s is proven, one of %d under the checkpoint\n",
		colors.Good("✓"), name, c.Seq, output.Printable(c.Origin), c.Size)
	rows := [][]string{{"time", c.Time.Format(time.RFC3339Nano)}, {"tenant", c.Tenant}, {"kind", c.Kind}, {"signed by", c.Key}}
	if content := c.Content; content != nil {
		var body bytes.Buffer
		if err := json.Compact(&body, content.Body); err != nil {
			return err
		}
		for _, row := range [][]string{
			{"peer", content.Peer}, {"capability", content.Capability}, {"side", content.Side},
			{"correlation", content.Correlation}, {"session", content.Session}, {"body", body.String()},
		} {
			if row[1] != "" {
				rows = append(rows, row)
			}
		}
	} else {
		rows = append(rows, []string{"content", "not shown: left out, or erased from the log"})
	}
	return output.WriteTable(a.stdout, []string{"FIELD", "VALUE"}, rows)
}
