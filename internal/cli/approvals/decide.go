package approvals

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/term"

	"github.com/agentd/agentd/approval"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
)

// A Decision is one `agentd approvals approve` or deny.
type Decision struct {
	// ID is the id of the waiting call, or its beginning: a person copies it from a list.
	ID string
	// Agent is the agent where the call waits; "" means to look for it in all of them.
	Agent   string
	Approve bool
	Reason  string
	// Key is the file of the key that signs; "" means to look for one that the agent takes.
	Key string
	// Signature is the file of a signature that was made elsewhere.
	Signature string
	// Yes signs without a question.
	Yes bool
}

// Decide lets a waiting call proceed, or denies it. Where the agent lists approvers it
// shows what is signed, and signs it.
func Decide(ctx context.Context, env *cli.Env, d Decision) error {
	call, err := find(ctx, env, d.Agent, d.ID)
	if err != nil {
		return err
	}
	decision := control.Decision{Approve: d.Approve, Reason: d.Reason}
	switch {
	case len(call.Signers) > 0:
		if decision, err = sign(ctx, env, &call, d); err != nil {
			return err
		}
	case d.Key != "" || d.Signature != "":
		return cli.Usage("%s takes no signatures: security.approvers of its agent.yaml lists nobody", call.Agent)
	}
	err = env.EachRunning(ctx, call.Agent, func(_ string, client *control.Client) error {
		return client.Decide(ctx, call.ID, decision)
	})
	if err != nil {
		return err
	}
	if env.Format != output.Table {
		return env.WriteJSON(map[string]any{"id": call.ID, "agent": call.Agent, "approved": d.Approve})
	}
	_, err = fmt.Fprintf(env.Stdout, "%s: the decision about %s is recorded: %s\n", call.Agent, call.ID, d.verb())
	return err
}

func (d *Decision) verb() approval.Decision {
	if d.Approve {
		return approval.Approve
	}
	return approval.Deny
}

// sign returns the decision with a signature under its statement.
func sign(ctx context.Context, env *cli.Env, call *waitingCall, d Decision) (control.Decision, error) {
	text, err := statement(call, d)
	if err != nil {
		return control.Decision{}, err
	}
	if d.Signature != "" {
		signature, err := cli.ReadFile(d.Signature, approval.MaxSignatureBytes)
		if err != nil {
			return control.Decision{}, fmt.Errorf("--signature: %w", err)
		}
		return control.Decision{Statement: text, Signature: signature}, nil
	}
	keys, err := openKeys(ctx, env, d.Key, call.Signers)
	if err != nil {
		return control.Decision{}, err
	}
	defer keys.close()
	// Shown before the key is used: what asks for a touch must not come first.
	fmt.Fprintf(env.Stderr, "%s\nThe payload:\n%s\nSigned by %s, for %s:\n", call.summary(), visible(indent(call.PayloadBytes())), keys.name, approval.Namespace)
	fmt.Fprintln(env.Stderr, visible(indent(text)))
	if !d.Yes {
		if err := confirm(env, d.verb()); err != nil {
			return control.Decision{}, err
		}
	}
	signature, err := approval.Sign(keys.signer, text)
	if err != nil {
		return control.Decision{}, err
	}
	return control.Decision{Statement: text, Signature: signature}, nil
}

// statement returns what a decision about a call signs. The payload that is shown must be
// the one that is named in it.
func statement(call *waitingCall, d Decision) ([]byte, error) {
	if got := envelope.DigestPayload(call.PayloadBytes()).String(); got != call.PayloadSHA256 {
		return nil, fmt.Errorf("%s shows a payload with the digest %s, and asks to sign %s: do not sign", call.Agent, got, call.PayloadSHA256)
	}
	if len(d.Reason) > approval.MaxReasonBytes {
		return nil, cli.Usage("--reason: more than %d bytes", approval.MaxReasonBytes)
	}
	return call.Statement(d.verb(), d.Reason).Encode()
}

// summary is a call in one line.
func (c *waitingCall) summary() string {
	text := fmt.Sprintf("%s calls %s of %s", c.Caller, strconv.Quote(c.Capability), c.Callee)
	if c.TenantID != "" {
		text += " for the tenant " + c.TenantID
	}
	if c.Origin != "" {
		text += ", which " + c.Origin + " asked for"
	}
	if c.Caller != c.asks() && !c.Proven {
		text += " (nothing proves that it is " + string(c.Caller) + ")"
	}
	return text
}

// asks is the agent at which the call waits.
func (c *waitingCall) asks() envelope.Address {
	return c.Statement(approval.Deny, "").AskedBy
}

func indent(text []byte) []byte {
	var out bytes.Buffer
	if json.Indent(&out, text, "", "  ") != nil {
		return text
	}
	return out.Bytes()
}

// visible escapes what a terminal would obey or hide: a payload is a stranger's, and must
// not rewrite what the person reads.
func visible(text []byte) string {
	var b strings.Builder
	for _, r := range string(text) {
		if r == '\n' || r != unicode.ReplacementChar && unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// confirm asks on a terminal whether to sign. Without one, the command itself is the
// answer.
func confirm(env *cli.Env, verb approval.Decision) error {
	file, ok := env.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	fmt.Fprintf(env.Stderr, "Type %s to sign: ", verb)
	line, err := bufio.NewReader(file).ReadString('\n')
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if strings.TrimSpace(line) != string(verb) {
		return errors.New("not confirmed: nothing was signed, and nothing decided")
	}
	return nil
}
