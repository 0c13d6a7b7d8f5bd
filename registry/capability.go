package registry

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
	Position Position
	// Locate returns the place that a JSON pointer into Config leads to. Nil locates
	// everything at Position.
	Locate func(pointer string) Position
}

// at is the place of a fault within the configuration.
func (c *Capability) at(pointer string) Position {
	if c.Locate != nil {
		return c.Locate(pointer)
	}
	p := c.Position
	p.Pointer += pointer
	return p
}

// Parse reads the capabilities of an agent from the object under the key capabilities,
// in the order of the text. Other keys are passed over. The text is JSON where name
// ends in .json, and YAML otherwise; name is what faults call it. The error is a
// [*LoadError].
func Parse(name string, src []byte) ([]Capability, error) {
	file, err := strictyaml.Parse(name, src)
	if err != nil {
		return nil, err
	}
	caps := ReadCapabilities(file.Root().Object().Get("capabilities"))
	return caps, file.Err()
}

// ReadCapabilities reads the object that lists the capabilities of an agent. Faults go
// to the value's file. An absent value lists none.
func ReadCapabilities(v strictyaml.Value) []Capability {
	var caps []Capability
	for _, e := range v.Entries() {
		if kind := e.Value.Kind(); kind != strictyaml.Map {
			e.Value.Fault(fmt.Sprintf("the configuration of a capability is a mapping, not %s", kind), fmt.Sprintf("write %s: {} where there is nothing to say", e.Name))
			continue
		}
		caps = append(caps, Capability{
			Key: e.Name, Config: e.Value.AppendJSON(nil),
			Position: e.Value.Position(), Locate: e.Value.Locate,
		})
	}
	return caps
}
