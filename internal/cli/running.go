package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/skillapi"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/spelling"
	"github.com/agentd/agentd/rpc"
)

// ID is the id of an agent that a command line names by its address or its id.
func ID(agent string) string {
	return strings.TrimPrefix(agent, string(envelope.AddressOf("")))
}

// checkMember returns a usage error for an agent that the fleet does not have and
// that does not run either: it may run for longer than fleet.yaml lists it.
func checkMember(ctx context.Context, f *fleet.Fleet, paths daemon.Paths, flag, id string) error {
	if _, ok := f.Member(id); ok || control.Answers(ctx, paths.Socket(id)) {
		return nil
	}
	ids := make([]string, len(f.Members))
	for i, m := range f.Members {
		ids[i] = m.ID
	}
	return Usage("%s: the fleet %s has no agent %q; it has %s", flag, f.Name, id, spelling.Among(id, ids))
}

// EachRunning calls use with a client for each agent of the fleet that runs on
// this machine, in the order of their ids, or for the named agent only. It stops
// at the first error, which then names the agent.
func (e *Env) EachRunning(ctx context.Context, agent string, use func(id string, client *control.Client) error) error {
	f, paths, err := e.InspectFleet()
	if err != nil {
		return err
	}
	running := []string{ID(agent)}
	if agent == "" {
		running, err = paths.Running(ctx)
	} else {
		err = checkMember(ctx, f, paths, "--agent", ID(agent))
	}
	if err != nil {
		return err
	}
	if len(running) == 0 {
		return errors.New("no agent of this fleet is running here")
	}
	for _, id := range running {
		// The client's own error says that a named agent does not run.
		client := control.NewClient(paths.Socket(id))
		err := use(id, client)
		client.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
	}
	return nil
}

// A Caller names the running agent that a call is made through. The zero value
// means the agent of the surrounding skill, else the only one that runs.
type Caller struct {
	// Agent is --as, the id of the agent.
	Agent string
	// Socket is --socket, the path of its control socket. It wins over Agent.
	Socket string
}

// Calls are made through a running agent: by an operator, or as part of the call that a
// skill serves.
type Calls interface {
	RequestAgent(ctx context.Context, r rpc.Request) (*rpc.Result, error)
	Await(ctx context.Context, correlationID string, timeout time.Duration) (*rpc.Result, error)
	Close()
}

// Calls returns what makes calls through the agent that c names. Inside a skill that is
// the API for skills of its own agent; flags name a control socket, which is an
// operator's.
func (e *Env) Calls(ctx context.Context, c Caller) (Calls, error) {
	if e.Getenv("AGENTD_URL") != "" && c == (Caller{}) {
		api, err := e.SkillAPI()
		if err != nil {
			return nil, err // and no interface with a nil in it
		}
		return api, nil
	}
	socket, err := e.Socket(ctx, c)
	if err != nil {
		return nil, err
	}
	return control.NewClient(socket), nil
}

// SkillAPI returns a client for the API of the agent whose skill runs this command.
func (e *Env) SkillAPI() (*skillapi.Client, error) {
	url, call := e.Getenv("AGENTD_URL"), e.Getenv("AGENTD_CALL")
	switch {
	case url == "":
		return nil, errors.New("AGENTD_URL is not set: this command is for skills, which agentd starts with AGENTD_URL and AGENTD_CALL")
	case call == "":
		return nil, errors.New("AGENTD_URL is set and AGENTD_CALL is not: agentd starts skills with both, so pass both on to what a skill starts")
	}
	return skillapi.NewClient(url, call), nil
}

// Socket returns the control socket of the agent that c names, else $AGENTD_SOCKET.
func (e *Env) Socket(ctx context.Context, c Caller) (string, error) {
	if c.Socket != "" {
		return c.Socket, nil
	}
	if socket := e.Getenv("AGENTD_SOCKET"); socket != "" && c.Agent == "" {
		return socket, nil
	}
	f, paths, err := e.InspectFleet()
	if err != nil {
		return "", err
	}
	if c.Agent != "" {
		id := ID(c.Agent)
		return paths.Socket(id), checkMember(ctx, f, paths, "--as", id)
	}
	running, err := paths.Running(ctx)
	if err != nil {
		return "", err
	}
	switch len(running) {
	case 0:
		return "", errors.New("no agent of this fleet is running: start it with `agentd fleet run` in another terminal")
	case 1:
		return paths.Socket(running[0]), nil
	}
	return "", Usage("several agents are running: choose the caller with --as %s", strings.Join(running, ", --as "))
}
