package fleet

import (
	"fmt"
	"path/filepath"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/strictyaml"
)

// Trace decodes the text of a file of a fleet, and adds to root what its decoder asks for. name
// is that of the file: fleet.yaml, agent.yaml, capabilities.yaml, rpc-peers.yaml or
// identities.yaml. The error has the faults of the text. No file that the text names is read.
func Trace(name string, src []byte, root *strictyaml.Key, known []KnownAction) error {
	file, err := strictyaml.ParseTraced(name, src, root)
	if err != nil {
		return err
	}
	const nowhere = "/nonexistent"
	p := paths{root: nowhere, real: nowhere, shown: nowhere}
	switch name {
	case ManifestName:
		decodeManifest(file, p)
	case "agent.yaml":
		decodeAgent(file, "desk", p, actionOptions{known: known, dir: filepath.Join(nowhere, "desk"), schemas: capability.LoadOptions{ValidateSchemas: true}})
	case "capabilities.yaml":
		_, err := capability.DecodeTraced(file)
		return err
	case "rpc-peers.yaml":
		decodePeers(file, filepath.Join(nowhere, name), p)
	case IdentitiesName:
		decodeIdentities(file)
	default:
		return fmt.Errorf("no decoder is traced for %s", name)
	}
	return file.Err()
}
