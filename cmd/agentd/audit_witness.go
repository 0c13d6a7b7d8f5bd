package main

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
)

// An agentWitness is a running agent that keeps the states of others' logs. It
// is asked on its own control socket where it runs on this machine, and else
// through the agent whose log it is, by transport.
type agentWitness struct {
	address envelope.Address
	own     string // the witness's control socket
	through string // that of the log's agent, or empty
}

var _ checkpoint.Witness = agentWitness{}

// agentWitness finds the way to the witness of a log.
func (a *app) agentWitness(address envelope.Address, log namedLog) (checkpoint.Witness, error) {
	f, err := a.loadFleet(fleet.LoadOptions{InspectOnly: true})
	if err != nil {
		return nil, fmt.Errorf("--witness %s: %w", address, err)
	}
	paths, err := a.paths(f)
	if err != nil {
		return nil, err
	}
	return agentWitness{address: address, own: paths.Socket(address.ID()), through: log.socket}, nil
}

// Name implements [checkpoint.Witness].
func (w agentWitness) Name() string { return string(w.address) }

// Latest implements [checkpoint.Witness].
func (w agentWitness) Latest(ctx context.Context, origin string) ([]byte, error) {
	note, err := ask(ctx, w.own, "", origin)
	if _, gone := errors.AsType[*control.NotRunningError](err); !gone || w.through == "" {
		return note, err
	}
	note, err = ask(ctx, w.through, w.address, origin)
	if _, gone := errors.AsType[*control.NotRunningError](err); gone {
		return nil, fmt.Errorf("%s does not run on this machine, and neither does the agent of the log, through which it could be asked", w.address)
	}
	return note, err
}

func ask(ctx context.Context, socket string, by envelope.Address, origin string) ([]byte, error) {
	client := control.NewClient(socket)
	defer client.Close()
	return client.Witnessed(ctx, by, origin)
}

// Cosign implements [checkpoint.Witness].
func (w agentWitness) Cosign(context.Context, []byte, int64, tlog.TreeProof) ([]byte, error) {
	return nil, errors.New("verifying asks for no signature")
}
