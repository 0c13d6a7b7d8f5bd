package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/witness"
	"github.com/agentd/agentd/envelope"
)

const (
	// eventWitnessed is the event of the lifecycle record that keeps what this witness has
	// seen of another agent's log. It is where the folder witness cannot be set back
	// unseen: this log is chained, signed, and has witnesses of its own.
	eventWitnessed = "witnessed"
	// rememberedEvery is by how many records a log grows from one such record to the next,
	// besides the one at a clean stop; a crash loses what the witness has seen since. Two
	// agents that witness each other see each other's records grow, so with less than the
	// number of a log's witnesses they would write without end.
	rememberedEvery = 64
	// rememberTimeout bounds the records at a stop.
	rememberTimeout = 10 * time.Second
)

// A witnessedBody is the body of such a record.
type witnessedBody struct {
	Event string `json:"event"`
	witness.Memory
}

// recallWitnessed recalls what this witness has seen of the logs of everybody it serves.
func (d *Daemon) recallWitnessed(ctx context.Context) error {
	d.witnesses.recalled = map[envelope.Address]bool{}
	found, all, err := d.newestMemories(ctx)
	if err != nil {
		return fmt.Errorf("what this witness has seen: %w", err)
	}
	for _, owner := range d.witnessed() {
		if m := found[owner]; m != nil || all {
			d.recall(ctx, owner, m)
		} else if err := d.recallOnce(ctx, owner); err != nil {
			return err
		}
	}
	return nil
}

// recallAtOnce bounds the records that are read together at the start.
const recallAtOnce = 4096

// newestMemories are the newest memories of all logs, as [Daemon.memoryOf] returns them one by
// one, which would take a query for each agent of the fleet. all says that nobody else has
// one; otherwise that has to be asked of each.
func (d *Daemon) newestMemories(ctx context.Context) (found map[envelope.Address]*witness.Memory, all bool, err error) {
	found = map[envelope.Address]*witness.Memory{}
	read := 0
	for e, err := range d.audit.log.Query(ctx, auditchain.Filter{
		Kinds: []auditchain.Kind{auditchain.KindLifecycle}, Text: eventWitnessed, Order: auditchain.NewestFirst, Limit: recallAtOnce,
	}) {
		if err != nil {
			return nil, false, err
		}
		read++
		var body witnessedBody
		if err := json.Unmarshal(e.Body, &body); err != nil {
			return nil, false, fmt.Errorf("record %d: %w", e.Seq, err)
		}
		if owner := envelope.Address(body.Owner); body.Event == eventWitnessed && found[owner] == nil {
			found[owner] = &body.Memory
		}
	}
	return found, read < recallAtOnce, nil
}

// witnessed are the agents whose logs this agent witnesses if they ask.
func (d *Daemon) witnessed() []envelope.Address {
	var all []envelope.Address
	for _, m := range d.cfg.Fleet.Members {
		all = append(all, m.Address)
	}
	for _, p := range d.Member().Peers {
		all = append(all, p.Address)
	}
	return all
}

// recallOnce recalls what this witness has seen of one agent's log, before it says
// anything about it. An agent may become a peer while this one runs.
func (d *Daemon) recallOnce(ctx context.Context, owner envelope.Address) error {
	d.witnesses.mu.Lock()
	defer d.witnesses.mu.Unlock()
	if d.witnesses.recalled[owner] {
		return nil
	}
	m, err := d.memoryOf(ctx, owner)
	if err != nil {
		return fmt.Errorf("what this witness has seen of %s: %w", owner, err)
	}
	d.recall(ctx, owner, m)
	return nil
}

// recall gives the witness what it has seen of one agent's log, nil for nothing. The lock is
// held, or nobody can ask the witness yet.
func (d *Daemon) recall(ctx context.Context, owner envelope.Address, m *witness.Memory) {
	d.witnesses.recalled[owner] = true
	if m == nil {
		return
	}
	edited, err := d.witnesses.server.Recall(ctx, *m)
	if err == nil && !edited {
		return
	}
	reason := "the folder held an older state of the log, or another log, than this agent's own audit log says; the witness goes on from that"
	if err != nil {
		reason = err.Error()
	}
	d.log.Error("this witness's store was edited, or an older copy of it restored", "agent", owner,
		"folder", d.cfg.Paths.Witness(d.Member().ID), "reason", reason)
	d.recordWitness(ctx, witnessBody{Event: "witness-store-edited", Peer: string(owner), Reason: reason})
}

// memoryOf returns the newest memory of an agent's log, or nil. One whose record was
// erased is none: that is how an operator lets the witness trust a log anew.
func (d *Daemon) memoryOf(ctx context.Context, owner envelope.Address) (*witness.Memory, error) {
	for e, err := range d.audit.log.Query(ctx, auditchain.Filter{
		Kinds: []auditchain.Kind{auditchain.KindLifecycle}, Peer: string(owner), Text: eventWitnessed,
		Order: auditchain.NewestFirst,
	}) {
		if err != nil {
			return nil, err
		}
		var body witnessedBody
		if err := json.Unmarshal(e.Body, &body); err != nil {
			return nil, fmt.Errorf("record %d: %w", e.Seq, err)
		}
		if body.Event == eventWitnessed {
			return &body.Memory, nil
		}
	}
	return nil, nil
}

// rememberWitnessed records what this witness has seen of one agent's log if it has grown
// by so many records since the last time. A failure is only logged: the next checkpoint
// is another opportunity.
func (d *Daemon) rememberWitnessed(ctx context.Context, owner envelope.Address, grown int64) {
	d.witnesses.mu.Lock()
	defer d.witnesses.mu.Unlock()
	m, due, err := d.witnesses.server.Unremembered(ctx, string(owner), grown)
	if err == nil && due {
		err = d.audit.append(ctx, auditchain.KindLifecycle, "", witnessedBody{Event: eventWitnessed, Memory: m})
	}
	if err != nil {
		d.log.Warn("what this witness has seen is not recorded", "agent", owner, "error", err)
	} else if due {
		d.witnesses.server.Remembered(m)
	}
}

// rememberAllWitnessed records what this witness has seen, before a clean stop.
func (d *Daemon) rememberAllWitnessed() {
	if d.witnesses.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), rememberTimeout)
	defer cancel()
	for _, owner := range d.witnessed() {
		// Most of a large fleet have shown this witness nothing, and need no query.
		if _, shown, err := d.witnesses.server.Unremembered(ctx, string(owner), 0); err == nil && !shown {
			continue
		}
		grown := int64(1)
		if m, err := d.memoryOf(ctx, owner); err == nil && m == nil {
			grown = 0 // the record was pruned since
		}
		d.rememberWitnessed(ctx, owner, grown)
	}
}
