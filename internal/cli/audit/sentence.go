package audit

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agentd/agentd/auditchain"
)

// facts are the members of any record's body that a table tells about. Bodies are
// other packages' and only gain members; what a body lacks is zero here.
type facts struct {
	// Calls, at either end.
	Role       string   `json:"role"`
	Status     string   `json:"status"`
	Code       string   `json:"code"`
	Failure    string   `json:"failure"`
	DetectedBy string   `json:"detectedBy"`
	Mode       string   `json:"mode"`
	Attempts   int      `json:"attempts"`
	Retried    []string `json:"retried"`
	Replayed   bool     `json:"replayed"`
	Unproven   bool     `json:"unproven"`
	LatencyMs  float64  `json:"latencyMs"`
	Origin     string   `json:"origin"`
	// Tools.
	Tool   string `json:"toolName"`
	Served string `json:"servedCapability"`
	// Refusals, approvals and checks.
	Decision     string `json:"decision"`
	Reason       string `json:"reason"`
	Rule         string `json:"rule"`
	Provider     string `json:"provider"`
	Subject      string `json:"subject"`
	Limit        int    `json:"limit"`
	RetryAfterMs int64  `json:"retryAfterMs"`
	Unrecorded   int64  `json:"unrecorded"`
	Approver     string `json:"approver"`
	Signer       string `json:"signer"`
	Refusal      string `json:"refusal"`
	WaitedMs     int64  `json:"waitedMs"`
	Enforced     bool   `json:"enforced"`
	// The agent and its log.
	Event    string            `json:"event"`
	Version  string            `json:"version"`
	Peer     string            `json:"peerId"`
	Number   uint64            `json:"number"`
	By       string            `json:"by"`
	Lost     int64             `json:"lost"`
	Count    int64             `json:"count"`
	Through  int64             `json:"through"`
	Ranges   [][2]int64        `json:"ranges"`
	Previous string            `json:"previous"`
	Key      string            `json:"key"`
	Actor    *auditchain.Actor `json:"actor"`
	Request  string            `json:"request"`
	// Captured payloads.
	Side    string `json:"side"`
	Bytes   int64  `json:"bytes"`
	Payload string `json:"payload"`
}

// sentence tells what a record says. A body that it cannot tell is returned as it is:
// agents of later versions write others.
func (r *record) sentence() string {
	if v, err := r.SchemaViolation(); err == nil {
		return violationSentence(&v)
	}
	var f facts
	if json.Unmarshal(r.Body, &f) != nil {
		return string(r.Body)
	}
	text := ""
	switch r.Kind { //exhaustive:enforce
	case auditchain.KindSchemaViolation: // above
	case auditchain.KindPayloadCapture:
		text = f.capture()
	case auditchain.KindRPCCall:
		text = f.call()
	case auditchain.KindAuthCheck:
		text = f.check()
	case auditchain.KindPermissionDenied:
		text = "denied by the " + f.Role + f.origin() + ": " + f.Reason + inParentheses(f.Rule) + f.more("denials")
	case auditchain.KindApproval:
		text = f.approval()
	case auditchain.KindRateLimited:
		text = fmt.Sprintf("refused by the %s%s: more than %d calls; the next may come in %s", f.Role, f.origin(), f.Limit, milliseconds(float64(f.RetryAfterMs))) + f.more("refusals")
	case auditchain.KindValidationExceeded:
		text = "refused by the " + f.Role + ": " + f.Reason
	case auditchain.KindSchemaDrift:
		text = map[bool]string{true: "the call was refused: ", false: "the call went on: "}[f.Enforced] + f.Reason
	case auditchain.KindToolCall:
		text = f.toolCall()
	case auditchain.KindLifecycle:
		text = f.lifecycle()
	case auditchain.KindRedaction:
		text = fmt.Sprintf("erased the content of %d records%s: %s", f.Count, inParentheses(runs(f.Ranges)), f.Reason) + f.by()
	case auditchain.KindPrune:
		text = fmt.Sprintf("removed %d records, up to number %d: %s", f.Count, f.Through, f.Reason) + f.by()
	case auditchain.KindCheckpoint:
		text = f.keyChange()
	}
	if text == "" {
		return string(r.Body)
	}
	return text
}

func violationSentence(v *auditchain.SchemaViolation) string {
	parts := make([]string, len(v.Violations))
	for i, violation := range v.Violations {
		parts[i] = strings.TrimSpace(violation.Path + " " + violation.Message)
	}
	text := "the " + string(v.Side) + " fails its schema: " + strings.Join(parts, "; ")
	if v.ViolationsOmitted > 0 {
		text += fmt.Sprintf("; and %d more", v.ViolationsOmitted)
	}
	return text
}

func (f *facts) capture() string {
	text := fmt.Sprintf("the %s that failed its schema, %d bytes: ", f.Side, f.Bytes)
	if f.Payload == "" {
		return text + "too large to be kept"
	}
	return text + f.Payload
}

// call tells of one call, as the end with the role saw it.
func (f *facts) call() string {
	if f.Status == "" {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "as %s%s: %s", f.Role, f.origin(), f.Status)
	if f.Code != "" {
		b.WriteString(" " + f.Code + inParentheses(f.Failure))
	}
	if f.DetectedBy != "" {
		b.WriteString(" by " + f.DetectedBy)
	}
	b.WriteString(" after " + milliseconds(f.LatencyMs))
	switch {
	case f.Attempts > 1 && f.Role == "callee":
		fmt.Fprintf(&b, ", attempt %d", f.Attempts)
	case f.Attempts > 1:
		fmt.Fprintf(&b, ", in %d attempts", f.Attempts)
	}
	if len(f.Retried) > 0 {
		b.WriteString(inParentheses("after " + strings.Join(f.Retried, ", ")))
	}
	if f.Mode != "" && f.Mode != "sync" {
		b.WriteString(", " + f.Mode)
	}
	if f.Replayed {
		b.WriteString(", an earlier answer again")
	}
	if f.Unproven {
		b.WriteString(", with a contract that was not proven")
	}
	return b.String() + f.more("malformed messages")
}

// origin is who asked the caller for the call.
func (f *facts) origin() string {
	if f.Origin == "" {
		return ""
	}
	return " for " + f.Origin
}

// toolCall tells of a tool that something in the agent has called.
func (f *facts) toolCall() string {
	if f.Tool == "" {
		return ""
	}
	text := "the tool " + f.Tool + ": " + f.Status
	if f.Code != "" {
		text += " " + f.Code
	}
	text += " after " + milliseconds(f.LatencyMs)
	if f.Served != "" {
		text += ", for a call of " + f.Served
	}
	return text
}

func (f *facts) check() string {
	var proof []string
	for _, part := range []string{f.Provider, f.Subject} {
		if part != "" {
			proof = append(proof, part)
		}
	}
	return "dropped a message that does not prove its sender: " + f.Reason + inParentheses(strings.Join(proof, " ")) + f.more("such messages")
}

func (f *facts) approval() string {
	waited := " after " + milliseconds(float64(f.WaitedMs))
	switch f.Decision {
	case "approve", "deny":
		verb := map[string]string{"approve": "approved", "deny": "denied"}[f.Decision]
		text := verb + " by " + f.Approver + f.process() + waited
		if f.Signer != "" {
			text = verb + ", signed by " + f.Signer + waited
		}
		if f.Reason != "" {
			text += ": " + f.Reason
		}
		return text
	case "expire":
		return "denied, since nobody decided" + waited + f.more("outcomes")
	case "cancel":
		return "given up by the caller" + waited + f.more("outcomes")
	case "overflow":
		return "denied, since too many calls were waiting already" + f.more("outcomes")
	case "refused":
		return "a decision by " + f.Approver + " does not count" + inParentheses(f.Refusal) + ": " + f.Reason + f.more("refused decisions")
	}
	return ""
}

// lifecycle describes an event of the agent or of its log. One without words of its own
// is described by its name.
func (f *facts) lifecycle() string {
	switch f.Event {
	case "":
		return ""
	case "started", "stopped":
		return "the agent " + f.Event + inParentheses(f.Version)
	case "reloaded":
		return "the agent reloaded its files" + inParentheses(f.Version)
	case "keys-changed":
		return "the agent read its keys again, since a key file was changed" + f.by()
	case "recovered":
		return "the audit log takes records again" + inParentheses(f.Code)
	case "clock-stepped-back":
		return "the clock was set back: records keep the time of the newest one until it has caught up"
	case "gap":
		return fmt.Sprintf("%d records could not be written: %s", f.Lost, f.Code)
	case auditchain.EventWitnessConflict:
		return "the witness " + f.Peer + " has seen another history of this log: " + f.Reason
	case "witness-refused":
		return "refused to witness the log of " + f.Peer + ": " + f.Reason
	case "witnessed":
		return "has seen the log of " + f.Peer
	case "dead-letter-redriven":
		return fmt.Sprintf("%s put dead letter %d back into the queue", f.By, f.Number) + f.process()
	case "dead-letter-dropped":
		return fmt.Sprintf("%s dropped dead letter %d", f.By, f.Number) + f.process()
	case "breakers-reset":
		return "circuit breakers were reset" + f.by()
	case "operator-refused":
		return "refused " + f.Request + " at the control socket to a process that is not an operator's: " + f.Reason + f.by() + f.more("refusals")
	}
	text := strings.ReplaceAll(f.Event, "-", " ")
	if f.Reason != "" {
		text += ": " + f.Reason
	}
	return text + f.by()
}

// by names who did it, unless the record is older than that.
func (f *facts) by() string {
	if f.Actor == nil {
		return ""
	}
	who := f.Actor.User
	switch {
	case f.Actor.UID == nil:
	case who == "":
		who = fmt.Sprintf("uid:%d", *f.Actor.UID)
	default:
		who += fmt.Sprintf(" (uid:%d)", *f.Actor.UID)
	}
	if who == "" {
		return ""
	}
	return ", by " + who + f.process()
}

// process names the process that did it.
func (f *facts) process() string {
	if f.Actor == nil || f.Actor.PID == 0 {
		return ""
	}
	text := fmt.Sprintf(", process %d", f.Actor.PID)
	if f.Actor.Executable != "" {
		text += " of " + f.Actor.Executable
	}
	return text
}

func (f *facts) keyChange() string {
	switch f.Event {
	case "key-rotated":
		return "the signing key changed, signed by the one before: " + f.Previous + " → " + f.Key + f.by()
	case "key-replaced":
		return "the lost signing key was replaced, and nothing vouches for the new one: " + f.Previous + " → " + f.Key + f.by()
	}
	return ""
}

// more tells of what happened beside the record and has none of its own.
func (f *facts) more(what string) string {
	if f.Unrecorded == 0 {
		return ""
	}
	return fmt.Sprintf("; %d more %s have no record", f.Unrecorded, what)
}

func inParentheses(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// runs lists runs of record numbers: 1–3, 7.
func runs(ranges [][2]int64) string {
	parts := make([]string, len(ranges))
	for i, r := range ranges {
		if parts[i] = strconv.FormatInt(r[0], 10); r[1] != r[0] {
			parts[i] += "–" + strconv.FormatInt(r[1], 10)
		}
	}
	return strings.Join(parts, ", ")
}

// milliseconds shows a time as people say it.
func milliseconds(ms float64) string {
	d := time.Duration(ms * float64(time.Millisecond))
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}
