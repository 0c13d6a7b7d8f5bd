package registry

import (
	"github.com/agentd/agentd/internal/capabilitylist"
	"github.com/agentd/agentd/internal/strictyaml"
)

// A Capability is one entry of an agent's capabilities: a key of the registry with its
// configuration, an object, and the place of both in a file, if there is one.
type Capability = capabilitylist.Capability

// Parse reads the capabilities of an agent from the object under the key capabilities,
// in the order of the text. Other keys are passed over. The text is JSON where name
// ends in .json, and YAML otherwise; name is what faults call it. The error is a
// [*LoadError].
func Parse(name string, src []byte) ([]Capability, error) {
	file, err := strictyaml.Parse(name, src)
	if err != nil {
		return nil, err
	}
	caps := capabilitylist.Read(file.Root().Object().Get("capabilities"))
	return caps, file.Err()
}
