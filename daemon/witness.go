package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/witness"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
)

// witnessService is the name under which agents witness each other's logs.
const witnessService = "witness"

const (
	// conflictsPerSecond bounds the records of inconsistent checkpoints: one agent
	// can submit them as fast as it likes, and each would grow the log.
	conflictsPerSecond = 1
	// conflictRecordTimeout bounds the record of a witness's conflict.
	conflictRecordTimeout = 10 * time.Second
	// witnessGrace is how long a witness may not co-sign before that is a warning, and too few
	// of them before it is a condition: one that restarts is none, and at a start all are
	// asked before all can answer.
	witnessGrace = time.Minute
)

// witnesses are the side of witnessing that serves other agents' logs.
type witnesses struct {
	server  *witness.Server // nil for an agent that only calls others
	sampler policy.Sampler  // of the records of inconsistent checkpoints
	// shortSince is when the quorum of this log's own witnesses was lost, zero while
	// there is one. It belongs to the goroutine that watches the audit log.
	shortSince time.Time

	// mu makes one memory at a time of what this witness has seen.
	mu       sync.Mutex
	recalled map[envelope.Address]bool // whose memories have been looked for; guarded by mu
}

// A witnessBody is the body of a lifecycle record about witnessing.
type witnessBody struct {
	// Event is witness-conflict (a witness of this log has seen another history of
	// it), witness-refused (this agent, as a witness, was shown another history) or
	// witness-store-edited (somebody else has written to what this witness keeps).
	Event string `json:"event"`
	// Peer is the agent at the other end.
	Peer string `json:"peerId"`
	// Reason is the witness's own.
	Reason string `json:"reason"`
}

// openWitness makes the agent a witness of other agents' logs.
func (d *Daemon) openWitness(ctx context.Context) error {
	d.witnesses.sampler.PerSecond = conflictsPerSecond
	if d.Member().ClientOnly() {
		return nil // no request could reach it
	}
	folder := d.cfg.Paths.Witness(d.Member().ID)
	registry, err := witness.OpenRegistry(folder)
	if err != nil {
		return err
	}
	store, err := checkpoint.NewFolderStore(folder)
	if err != nil {
		return err
	}
	d.witnesses.server = witness.NewServer(d.audit.log.Keeper(store, registry.Keys), registry)
	return d.recallWitnessed(ctx)
}

// addWitnesses has the agent's own log witnessed by the peers that agent.yaml names.
// They get its checkpoint now, and every new one later.
func (d *Daemon) addWitnesses(ctx context.Context) error {
	if len(d.Member().Agent.Audit.Witnesses) == 0 {
		return nil
	}
	// A new witness needs a checkpoint to begin with.
	if _, err := d.audit.log.Checkpoint(ctx); err != nil {
		return err
	}
	for _, w := range d.Member().Agent.Audit.Witnesses {
		var added checkpoint.Witness = witness.NewRemote(string(w.Address), d.callWitness(w.Address), d.audit.log)
		if len(w.Keys) > 0 {
			pinned, err := checkpoint.NewPinned(added, w.Keys...)
			if err != nil {
				return fmt.Errorf("the keys of the witness %s: %w", w.Address, err)
			}
			added = pinned
		}
		d.audit.log.AddWitness(added)
	}
	return nil
}

// callWitness returns a function that carries one question to the witness at another
// agent.
func (d *Daemon) callWitness(address envelope.Address) func(context.Context, []byte) ([]byte, error) {
	return func(ctx context.Context, question []byte) ([]byte, error) {
		return d.client.CallService(ctx, address, witnessService, question)
	}
}

// serveWitness answers as a witness. It serves only the fleet's members and this
// agent's peers, because it keeps a file for each log: a stranger could fill the disk.
func (d *Daemon) serveWitness(ctx context.Context, from envelope.Address, question json.RawMessage) (json.RawMessage, error) {
	_, peer := d.peers.Peer(from)
	if _, member := d.cfg.Fleet.Member(from.ID()); !member && !peer {
		return nil, fmt.Errorf("%s asks for a witness, and is neither a member of the fleet nor a peer", from)
	}
	if err := d.recallOnce(ctx, from); err != nil {
		return nil, err
	}
	answer, err := d.witnesses.server.Answer(ctx, string(from), question)
	switch {
	case err == nil:
		d.rememberWitnessed(ctx, from, rememberedEvery)
	case errors.Is(err, checkpoint.ErrInconsistent):
		d.log.Error("an agent's audit log was rewritten or replaced", "agent", from, "reason", err)
		if take, _ := d.witnesses.sampler.Take(time.Now()); take {
			d.recordWitness(ctx, witnessBody{Event: "witness-refused", Peer: string(from), Reason: err.Error()})
		}
	case errors.Is(err, checkpoint.ErrEdited):
		d.log.Error("this witness's store was edited: restore its folder, or remove the file of that log", "agent", from,
			"folder", d.cfg.Paths.Witness(d.Member().ID), "reason", err)
		if take, _ := d.witnesses.sampler.Take(time.Now()); take {
			d.recordWitness(ctx, witnessBody{Event: "witness-store-edited", Peer: string(from), Reason: err.Error()})
		}
	case errors.Is(err, witness.ErrNotIntroduced):
		d.log.Info("an agent's audit log has a new key: it has to prove which of the known ones introduced it", "agent", from)
	case err != nil:
		d.log.Warn("a checkpoint was not co-signed", "agent", from, "reason", err)
	}
	if answer == nil {
		return nil, err
	}
	return answer, nil // it carries the error to the other end
}

// onWitness takes what a witness of this agent's log has answered to a checkpoint.
// A conflict holds until that witness co-signs again: one that no longer answers has
// taken nothing back.
func (d *Daemon) onWitness(name string, err error) {
	switch {
	case errors.Is(err, checkpoint.ErrInconsistent):
		d.conditions.Begin(health.Condition{
			Kind: health.Witness, Subject: name, Code: "conflict", Effect: "a witness has seen another history of the audit log", Cause: err.Error(),
			Remedy: "verify the log (agentd audit verify) and find out who changed it; restore the log that the witness knows",
		})
		ctx, cancel := context.WithTimeout(context.Background(), conflictRecordTimeout)
		defer cancel()
		d.recordWitness(ctx, witnessBody{Event: auditchain.EventWitnessConflict, Peer: name, Reason: err.Error()})
	case err != nil:
		d.log.Info("a witness has not co-signed the audit log; agentd will try again", "witness", name, "reason", err) // see tellWitnesses
	default:
		d.conditions.End(health.Witness, name)
		d.log.Info("a witness has co-signed the audit log", "witness", name)
	}
}

// tellWitnesses logs the witnesses that are overdue to co-sign the audit log. That they have
// co-signed again is logged by onWitness.
func (d *Daemon) tellWitnesses(overdue []string, answers map[string]error) {
	for _, name := range overdue {
		d.log.Warn("a witness does not co-sign the audit log; agentd goes on asking", "witness", name, "for", witnessGrace, "reason", answers[name])
	}
}

// showQuorum shows whether as many witnesses as agent.yaml demands have co-signed the
// audit log, given what each has answered last. Calls go on without: a witness may be
// anybody's, and must not be able to stop them.
func (d *Daemon) showQuorum(answers map[string]error, now time.Time) {
	var missing []string
	for name, err := range answers {
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v", name, err))
		}
	}
	quorum := min(cmp.Or(d.Member().Agent.Audit.WitnessQuorum, len(answers)), len(answers))
	signed := len(answers) - len(missing)
	if signed >= quorum {
		d.witnesses.shortSince = time.Time{}
		d.conditions.End(health.Witness, "")
		return
	}
	if d.witnesses.shortSince.IsZero() {
		d.witnesses.shortSince = now
	}
	if now.Sub(d.witnesses.shortSince) < witnessGrace {
		return
	}
	slices.Sort(missing)
	d.conditions.Begin(health.Condition{
		Kind: health.Witness, Code: "quorum", Advisory: true, Effect: "too few witnesses co-sign the audit log",
		Cause:  fmt.Sprintf("%d of %d have co-signed its newest checkpoint, %d must; %s", signed, len(answers), quorum, strings.Join(missing, "; ")),
		Remedy: "let the agent reach them, and pin the keys that they have; agentd asks again",
	})
}

// recordWitness records an event of witnessing. A failure is only logged: the other
// agent's answer does not depend on it.
func (d *Daemon) recordWitness(ctx context.Context, body witnessBody) {
	// A closed log is no failure: the answer arrived while the agent was stopping.
	if err := d.audit.append(ctx, auditchain.KindLifecycle, "", body); err != nil && auditchain.CodeOf(err) != auditchain.CodeClosed {
		d.log.Error("witness event not recorded", "event", body.Event, "agent", body.Peer, "error", err)
	}
}

// Warnings are texts about what an operator should look at although the agent is ready.
func (d *Daemon) Warnings() []string {
	all := d.conditions.Warnings()
	for _, c := range slices.Concat(d.overload(), d.refusedReload(), d.unconfined(), advisories(d.toolTrouble()), d.usedTrouble(), d.mcp.issuerTrouble()) {
		all = append(all, c.String())
	}
	return slices.Concat(all, d.gate.Warnings(), d.restartWarnings())
}

// Witnessed is the newest checkpoint of the log called origin that a witness holds,
// or nil. The witness is a peer, or this agent itself if by is its address or empty.
// It implements [control.Witnesses].
func (d *Daemon) Witnessed(ctx context.Context, by envelope.Address, origin string) ([]byte, error) {
	if cmp.Or(by, d.Member().Address) != d.Member().Address {
		return witness.NewRemote(string(by), d.callWitness(by), nil).Latest(ctx, origin)
	}
	if d.witnesses.server == nil {
		return nil, fmt.Errorf("%s only calls others: it witnesses no log", d.Member().Address)
	}
	return d.witnesses.server.Latest(ctx, origin)
}
