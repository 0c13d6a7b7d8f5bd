package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/agentd/agentd/daemon/control"
)

// EachRunning calls use with a client for each agent of the fleet that runs on
// this machine, in the order of their ids, or for the named agent only. It stops
// at the first error, which then names the agent.
func (e *Env) EachRunning(ctx context.Context, agent string, use func(id string, client *control.Client) error) error {
	_, paths, err := e.InspectFleet()
	if err != nil {
		return err
	}
	running := []string{agent}
	if agent == "" {
		if running, err = paths.Running(ctx); err != nil {
			return err
		}
	}
	if len(running) == 0 {
		return errors.New("no agent of this fleet is running here")
	}
	for _, id := range running {
		// A named agent is not looked up first: the client's own error says that it
		// does not run.
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

// Socket returns the control socket of the agent that c names. Inside a skill
// $AGENTD_SOCKET names the skill's own agent, which only explicit flags override.
func (e *Env) Socket(ctx context.Context, c Caller) (string, error) {
	if c.Socket != "" {
		return c.Socket, nil
	}
	if own := e.Getenv("AGENTD_SOCKET"); own != "" && c.Agent == "" {
		return own, nil
	}
	_, paths, err := e.InspectFleet()
	if err != nil {
		return "", err
	}
	if c.Agent != "" {
		return paths.Socket(c.Agent), nil
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
