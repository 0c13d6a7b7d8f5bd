package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
)

func (a *app) capabilitiesCommand() *cobra.Command {
	cmd := a.group(&cobra.Command{
		Use: "capabilities", Aliases: []string{"caps"}, Short: "Look at capability files and their schemas",
	})
	cmd.AddCommand(
		a.capabilitiesShowCommand(), a.capabilitiesValidateCommand(),
		a.capabilitiesSampleCommand(), a.capabilitiesLintCommand(), a.capabilitiesGenCommand(),
		a.capabilitiesDiffCommand(), a.capabilitiesLockCommand(), a.capabilitiesCheckCommand(),
	)
	return cmd
}

// loadOptions load a capabilities file outside of a fleet, with the same checks
// that package fleet makes.
func loadOptions() capability.LoadOptions {
	return capability.LoadOptions{ValidateSchemas: true, SecondOpinion: daemon.LoadOptions().SecondOpinion}
}

// A contractChoice are the flags that say whose capabilities are meant.
type contractChoice struct{ peer, path string }

func (c *contractChoice) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.peer, "peer", "", "the capabilities of this member of the fleet")
	cmd.Flags().StringVar(&c.path, "capabilities", "", "the capabilities file at this path")
	cmd.MarkFlagsMutuallyExclusive("peer", "capabilities")
}

// document loads the chosen file; with no choice it is that of the one member
// which declares the capability name.
func (a *app) document(choice contractChoice, name string) (*capability.Document, error) {
	if choice.path != "" {
		return capability.LoadWith(choice.path, loadOptions())
	}
	f, err := a.loadFleet(fleet.LoadOptions{})
	if err != nil {
		return nil, err
	}
	if choice.peer != "" {
		m, ok := f.Member(strings.TrimPrefix(choice.peer, string(envelope.AddressOf(""))))
		switch {
		case !ok:
			return nil, fmt.Errorf("the fleet %s has no agent %q", f.Name, choice.peer)
		case m.ClientOnly():
			return nil, fmt.Errorf("agent %q offers no capabilities: it only calls others", choice.peer)
		}
		return m.Capabilities, nil
	}
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
	return nil, usage("several members declare %q: say which with --peer %s", name, strings.Join(ids, ", --peer "))
}

// function finds one capability of the chosen document.
func (a *app) function(choice contractChoice, name string) (*capability.Capability, error) {
	doc, err := a.document(choice, name)
	if err != nil {
		return nil, err
	}
	c, ok := doc.Lookup(name)
	if !ok {
		return nil, fmt.Errorf("%s declares no capability %q; it has %s", doc.Path, name, strings.Join(doc.Names(), ", "))
	}
	return c, nil
}

// contract is one side of a capability; nil is loose JSON.
func contract(c *capability.Capability, side string) (*capability.Contract, error) {
	switch side {
	case "request":
		return c.Input, nil
	case "response":
		return c.Output, nil
	}
	return nil, usage("--side: must be request or response, not %q", side)
}
