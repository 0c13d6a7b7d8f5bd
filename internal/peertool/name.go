package peertool

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
)

// MaxName is the length of the longest name of a tool that every provider of models takes.
const MaxName = 64

// Name is the name of the tool for a capability of an agent. It depends on these two
// alone, so that a name means the same in every version of the fleet's files. Characters
// that no provider of models takes become _, and a name that is too long ends in a hash.
func Name(agent, capability string) string { return fit(agent + "__" + capability) }

// BareName is the name of the tool for a capability without its agent's.
func BareName(capability string) string { return fit(capability) }

func fit(full string) string {
	name := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, full)
	if len(name) <= MaxName {
		return name
	}
	sum := sha256.Sum256([]byte(full))
	const hash = 8
	return name[:MaxName-1-hash] + "_" + hex.EncodeToString(sum[:])[:hash]
}

// Title is what the tool for a capability is called for people.
func Title(agent envelope.Address, c *capability.Capability) string {
	name := c.Name
	if c.Title != "" {
		name = c.Title
	}
	return name + " of " + agent.ID()
}

// Description is what the tool for a capability says to models. It is never empty.
func Description(agent envelope.Address, c *capability.Capability) string {
	if c.Description != "" {
		return c.Description
	}
	return "Calls " + c.Name + " of the agent " + agent.ID() + "."
}
