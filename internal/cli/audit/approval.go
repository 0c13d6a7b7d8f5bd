package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/agentd/agentd/approval"
	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/rpc"
)

const (
	// maxApprovalsBytes bounds the records of one check.
	maxApprovalsBytes = 256 << 20
	// maxApproversBytes bounds a list of people.
	maxApproversBytes = 1 << 20
)

// VerifyApprovals checks the signed decisions among the records in a file, or on
// standard input for "-", against lists of people. It needs neither a log nor a fleet.
func VerifyApprovals(env *cli.Env, file string, lists []string) error {
	var approvers []approval.Approver
	for _, name := range lists {
		text, err := cli.ReadFile(name, maxApproversBytes)
		if err != nil {
			return fmt.Errorf("--approvers: %w", err)
		}
		more, err := parseApprovers(name, string(text))
		if err != nil {
			return err
		}
		approvers = append(approvers, more...)
	}
	var text []byte
	var err error
	if file == "-" {
		text, err = io.ReadAll(io.LimitReader(env.Stdin, maxApprovalsBytes))
	} else {
		text, err = cli.ReadFile(file, maxApprovalsBytes)
	}
	if err != nil {
		return err
	}
	records, err := readApprovals(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	checked, good := []checkedApproval{}, true
	for i := range records {
		if records[i].Kind != string(auditchain.KindApproval) || records[i].Decision != string(approval.Approve) && records[i].Decision != string(approval.Deny) {
			continue
		}
		c := records[i].check(approvers)
		checked, good = append(checked, c), good && c.OK
	}
	if err := writeApprovals(env, checked); err != nil {
		return err
	}
	if !good {
		return cli.Finding(nil)
	}
	return nil
}

// parseApprovers reads lines of an allowed_signers or an authorized_keys file. A line
// without a name is named by its comment; one for other namespaces than that of approvals
// is passed over, as ssh-keygen would.
func parseApprovers(file, text string) (all []approval.Approver, err error) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		who := approval.Approver{Name: fields[0]}
		// The key begins where a key can be read; before it are names and options.
		at := 0
		for ; at < len(fields); at++ {
			if who.Key, err = approval.ParseKey(strings.Join(fields[at:], " ")); err == nil {
				break
			}
		}
		if at == 0 {
			who.Name = strings.Join(fields[min(2, len(fields)):], " ")
		}
		may := false
		if err == nil {
			may, err = mayApprove(strings.Join(fields[:at], " "))
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		if may {
			all = append(all, who)
		}
	}
	return all, nil
}

// namespaces is the option of an allowed_signers file that lists, as patterns, what a key
// may sign.
var namespaces = regexp.MustCompile(`(?i)\bnamespaces="([^"]*)"`)

// mayApprove reports whether the options before a key let it sign approvals. Those that
// bound its time, or have it stand for others, it refuses: to ignore them would accept
// what the list does not.
func mayApprove(options string) (bool, error) {
	for _, name := range []string{"cert-authority", "valid-after", "valid-before", "expiry-time"} {
		if strings.Contains(strings.ToLower(options), name) {
			return false, fmt.Errorf("the option %s is not supported here: check with ssh-keygen, or list the keys that counted without it", name)
		}
	}
	listed := namespaces.FindStringSubmatch(options)
	if listed == nil {
		return true, nil
	}
	may := false
	for pattern := range strings.SplitSeq(listed[1], ",") {
		pattern, not := strings.CutPrefix(pattern, "!")
		if ok, err := path.Match(pattern, approval.Namespace); err != nil || ok {
			if not || err != nil {
				return false, nil
			}
			may = true
		}
	}
	return may, nil
}

// An approvalRecord is what a check needs of a record.
type approvalRecord struct {
	Agent         string `json:"agent"`
	Seq           int64  `json:"seq"`
	Kind          string `json:"kind"`
	TS            int64  `json:"ts"`
	TenantID      string `json:"tenantId"`
	ID            string `json:"approvalId"`
	Role          string `json:"role"`
	Peer          string `json:"peerId"`
	Capability    string `json:"capabilityName"`
	CorrelationID string `json:"correlationId"`
	PayloadSHA256 string `json:"payloadSha256"`
	Decision      string `json:"decision"`
	Reason        string `json:"reason"`
	Statement     string `json:"statement"`
	Signature     string `json:"signature"`
}

// readApprovals reads records one after another, or an array of them.
func readApprovals(text []byte) (all []approvalRecord, err error) {
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '[' {
		err := json.Unmarshal(trimmed, &all)
		return all, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		var r approvalRecord
		switch err := decoder.Decode(&r); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, r)
	}
}

// A checkedApproval is the verdict on one signed decision.
type checkedApproval struct {
	Agent    string `json:"agent,omitempty"`
	Seq      int64  `json:"seq,omitempty"`
	OK       bool   `json:"ok"`
	Decision string `json:"decision"`
	Error    string `json:"error,omitempty"`
	Signer   string `json:"signer,omitempty"`
	Key      string `json:"key,omitempty"`
}

// check verifies a decision. A decision without a signature is none that could be
// verified, whatever else the record says.
func (r *approvalRecord) check(approvers []approval.Approver) checkedApproval {
	out := checkedApproval{Agent: r.Agent, Seq: r.Seq, Decision: r.Decision}
	s, signer, err := approval.Verify(approvers, []byte(r.Statement), []byte(r.Signature))
	if err == nil {
		err = r.matches(&s)
	}
	if err != nil {
		out.Error = err.Error()
		return out
	}
	out.OK, out.Signer, out.Key = true, signer.Name, signer.Fingerprint()
	return out
}

// matches reports where a record says something else than the statement in it.
func (r *approvalRecord) matches(s *approval.Statement) error {
	asks, peer := s.Caller, s.Callee
	if r.Role == string(rpc.RoleCallee) {
		asks, peer = peer, asks
	}
	// Both ends may ask about one call, and one's approval is not the other's.
	if s.AskedBy != asks {
		return fmt.Errorf("the record says that the %.16s asked, and the signed statement that %.128q did", r.Role, s.AskedBy)
	}
	tenant := s.Tenant
	if tenant == "" {
		tenant = r.TenantID // of the log's own for calls without one
	}
	for _, field := range []struct{ name, record, statement string }{
		{"approvalId", r.ID, s.ApprovalID},
		{"peerId", r.Peer, string(peer)},
		{"capabilityName", r.Capability, s.Capability},
		{"correlationId", r.CorrelationID, s.CorrelationID},
		{"tenantId", r.TenantID, tenant},
		{"payloadSha256", r.PayloadSHA256, s.PayloadSHA256},
		{"decision", r.Decision, string(s.Decision)},
		{"reason", r.Reason, s.Reason},
	} {
		if field.record != field.statement {
			return fmt.Errorf("the record says %s %.128q, and the signed statement %.128q", field.name, field.record, field.statement)
		}
	}
	if at := time.UnixMilli(r.TS); at.After(s.Expires.Add(recordDelay)) {
		return fmt.Errorf("the record is of %s, and the statement expired at %s", at.UTC().Format(time.RFC3339), s.Expires.Format(time.RFC3339))
	}
	return nil
}

// recordDelay is how long a decision may take to its record.
const recordDelay = time.Minute

func writeApprovals(env *cli.Env, checked []checkedApproval) error {
	if env.Format != output.Table {
		return cli.WriteList(env, checked)
	}
	if len(checked) == 0 {
		fmt.Fprintln(env.Stderr, "no decisions among these records.")
		return nil
	}
	rows := make([][]string, len(checked))
	for i, c := range checked {
		verdict, detail := "good", "signed by "+c.Signer+" "+c.Key
		if !c.OK {
			verdict, detail = "FALSE", c.Error
		}
		rows[i] = []string{c.Agent, fmt.Sprint(c.Seq), c.Decision, verdict, detail}
	}
	return env.WriteTable([]string{"AGENT", "SEQ", "DECISION", "VERDICT", "DETAIL"}, rows)
}
