package daemon

import (
	"fmt"

	"github.com/agentd/agentd/envelope"
)

// fleetVersion returns the fleet's version, which the environment sets, as text and
// parsed; both are zero where it sets none. The reference system's name for the
// variable is accepted too, after our own.
func fleetVersion(getenv func(string) string) (text string, v envelope.FleetVersion, err error) {
	for _, name := range []string{"AGENTD_FLEET_VERSION", "DECLARAGENT_FLEET_VERSION"} {
		if text = getenv(name); text == "" {
			continue
		}
		if v, err = envelope.ParseFleetVersion(text); err != nil {
			return "", v, fmt.Errorf("%s: %w", name, err)
		}
		return text, v, nil
	}
	return "", v, nil
}
