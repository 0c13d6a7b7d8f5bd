package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/proof"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
)

// VerifyProof checks the proof in a file, or on standard input for "-", against
// verifier keys. It needs neither the log nor a fleet.
func VerifyProof(env *cli.Env, file string, keys []string) error {
	texts, err := readKeys("--key", keys)
	if err != nil {
		return err
	}
	trusted, err := checkpoint.NewKeys(texts...)
	if err != nil {
		return err
	}
	var text []byte
	if file == "-" {
		// One byte more than the limit, so that the parser sees and rejects a proof
		// that is too long instead of a truncated one.
		text, err = io.ReadAll(io.LimitReader(env.Stdin, proof.MaxBytes+1))
	} else {
		text, err = cli.ReadFile(file, proof.MaxBytes)
	}
	if err != nil {
		return err
	}
	checked := checkProof(text, trusted)
	if err := checked.write(env, file); err != nil {
		return err
	}
	if !checked.OK {
		return cli.Finding(nil)
	}
	return nil
}

// A checkedProof is the verdict on a proof. All members but OK and Error are
// taken from a good proof, and are empty otherwise: nothing that a bad proof
// claims is shown.
type checkedProof struct {
	OK           bool           `json:"ok"`
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

// checkProof copies members out of the proof only after Verify has accepted all of
// it.
func checkProof(text []byte, trusted *checkpoint.Keys) checkedProof {
	p, err := proof.Parse(text)
	if err != nil {
		return checkedProof{Error: err.Error()}
	}
	result, err := p.Verify(trusted)
	if err != nil {
		return checkedProof{Error: err.Error()}
	}
	return checkedProof{
		OK: true, Origin: result.Origin, Seq: p.Record.Seq, Time: result.Time, Tenant: p.Record.Tenant, Kind: p.Record.Kind,
		Hash: fmt.Sprintf("%x", result.Hash[:]), Size: result.Size, Key: result.Key,
		ContentShown: result.ContentShown, Content: p.Record.Content,
	}
}

// write prints the verdict. Text from the proof goes through output.Printable: a
// stranger may have made the file.
func (c *checkedProof) write(env *cli.Env, name string) error {
	if env.Format != output.Table {
		return env.WriteJSON(c)
	}
	colors := env.Colors()
	if !c.OK {
		fmt.Fprintf(env.Stdout, "%s %s: %s\n", colors.Bad("✗"), name, output.Printable(c.Error))
		return nil
	}
	fmt.Fprintf(env.Stdout, "%s %s: record %d of %s is proven, one of %d under the checkpoint\n",
		colors.Good("✓"), name, c.Seq, output.Printable(c.Origin), c.Size)
	rows := [][]string{{"time", c.Time.Format(time.RFC3339Nano)}, {"tenant", c.Tenant}, {"kind", c.Kind}, {"signed by", c.Key}}
	if c.Content == nil {
		rows = append(rows, []string{"content", "not shown: left out, or erased from the log"})
		return env.WriteTable([]string{"FIELD", "VALUE"}, rows)
	}
	var body bytes.Buffer
	if err := json.Compact(&body, c.Content.Body); err != nil {
		return err
	}
	for _, row := range [][]string{
		{"peer", c.Content.Peer}, {"capability", c.Content.Capability}, {"side", c.Content.Side},
		{"correlation", c.Content.Correlation}, {"session", c.Content.Session}, {"body", body.String()},
	} {
		if row[1] != "" {
			rows = append(rows, row)
		}
	}
	return env.WriteTable([]string{"FIELD", "VALUE"}, rows)
}
