package capabilitylist

import (
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/internal/strictyaml"
)

// A Capability is one entry of an agent's capabilities, as its file has it.
type Capability struct {
	// Key names a capability of the registry.
	Key string
	// Config is an object. Nil stands for an empty one.
	Config json.RawMessage
	// Position is where the entry stands. It is zero where there is no file.
	Position strictyaml.Position

	places *strictyaml.Places // nil where there is no file
}

// At returns the place that a JSON pointer into Config leads to.
func (c *Capability) At(pointer string) strictyaml.Position {
	if c.places != nil {
		return c.places.Locate(pointer)
	}
	p := c.Position
	p.Pointer += pointer
	return p
}

// Read reads the object, in the order of the file. Faults go to that file. An absent
// value lists nothing.
func Read(v strictyaml.Value) []Capability {
	var caps []Capability
	for _, e := range v.Entries() {
		if kind := e.Value.Kind(); kind != strictyaml.Map {
			e.Value.Fault(fmt.Sprintf("the configuration of a capability is a mapping, not %s", kind), fmt.Sprintf("write %s: {} where there is nothing to say", e.Name))
			continue
		}
		places := e.Value.Places()
		caps = append(caps, Capability{Key: e.Name, Config: e.Value.AppendJSON(nil), Position: e.Value.Position(), places: &places})
	}
	return caps
}
