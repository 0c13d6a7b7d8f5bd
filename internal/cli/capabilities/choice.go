package capabilities

import (
	"fmt"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
)

// A Choice selects a capabilities file. The zero value selects that of the one
// member of the fleet that declares the capability in question.
type Choice struct {
	// Peer is --peer, the id or address of a member.
	Peer string
	// File is --capabilities, the path of a file, which needs no fleet.
	File string
}

// document loads the chosen file; name is the capability in question.
func (c Choice) document(env *cli.Env, name string) (*capability.Document, error) {
	if c.File != "" {
		return capability.LoadWith(c.File, cli.FileOptions())
	}
	f, err := env.LoadFleet(fleet.LoadOptions{})
	if err != nil {
		return nil, err
	}
	if c.Peer != "" {
		m, ok := f.Member(cli.ID(c.Peer))
		switch {
		case !ok:
			return nil, fmt.Errorf("the fleet %s has no agent %q", f.Name, c.Peer)
		case m.ClientOnly():
			return nil, fmt.Errorf("agent %q offers no capabilities: it only calls others", c.Peer)
		}
		return m.Capabilities, nil
	}
	// Neither flag: the name alone selects the file, as long as only one member
	// declares it.
	var found []*capability.Document
	var ids []string
	for _, m := range f.Members {
		if m.ClientOnly() {
			continue
		}
		if _, ok := m.Capabilities.Lookup(name); ok {
			found, ids = append(found, m.Capabilities), append(ids, m.ID)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("no member of the fleet %s declares a capability %q", f.Name, name)
	case 1:
		return found[0], nil
	}
	return nil, cli.Usage("several members declare %q: choose one with --peer %s", name, strings.Join(ids, ", --peer "))
}

// find loads the chosen file, and finds one capability in it.
func (c Choice) find(env *cli.Env, name string) (*capability.Document, *capability.Capability, error) {
	doc, err := c.document(env, name)
	if err != nil {
		return nil, nil, err
	}
	found, ok := doc.Lookup(name)
	if !ok {
		return nil, nil, fmt.Errorf("%s declares no capability %q; it has %s", doc.Path, name, strings.Join(doc.Names(), ", "))
	}
	return doc, found, nil
}

// contract returns the schema of one side, or nil where any JSON is accepted.
func contract(c *capability.Capability, side string) (*capability.Contract, error) {
	switch side {
	case "request":
		return c.Input, nil
	case "response":
		return c.Output, nil
	}
	return nil, cli.Usage("--side: must be request or response, not %q", side)
}
