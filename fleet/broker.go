package fleet

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/strictyaml"
)

// decodeBroker reads the block broker.
func decodeBroker(v strictyaml.Value) Broker {
	if !v.Present() {
		return Broker{}
	}
	o := v.Object()
	defer o.Done()
	return Broker{FleetNames: o.Need("names").Enum("agent", "fleet") == "fleet", Position: v.Position()}
}

// brokerSafe is the grammar of a name that can be part of the names on a broker.
var brokerSafe = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// BrokerName is what names the agent's services, streams and buckets on a broker: its
// id, after the fleet's name where the fleet says so. The agents of other fleets have
// only their ids.
func (f *Fleet) BrokerName(a envelope.Address) string {
	if _, member := f.Member(a.ID()); member && f.Broker.FleetNames {
		return f.Name + "." + a.ID()
	}
	return a.ID()
}

// checkBroker makes sure that the subjects of the members carry the fleet's name, where
// the fleet says so: two fleets on one broker then have no subject in common.
func (f *Fleet) checkBroker() error {
	if !f.Broker.FleetNames {
		return nil
	}
	if !brokerSafe.MatchString(f.Name) {
		return &strictyaml.Error{Faults: []Fault{{
			Position: f.Broker.Position, Message: fmt.Sprintf("the fleet's name %q cannot be part of the names on a broker", f.Name), Hint: "use letters, digits, - and _",
		}}}
	}
	var faults []Fault
	seen := map[Position]bool{}
	read := map[string]bool{} // members share peers files
	for _, m := range f.Members {
		specs := []capability.TransportSpec{}
		if m.Capabilities != nil {
			specs = append(specs, m.Capabilities.Transports...)
		}
		if !read[m.PeersFile] {
			read[m.PeersFile] = true
			for _, p := range m.Peers {
				if p.InFleet {
					specs = append(specs, p.Transports...)
				}
			}
		}
		for _, spec := range specs {
			if spec.Kind == capability.NATS && !strings.HasPrefix(spec.Requests, f.Name+".") && !seen[spec.Position] {
				seen[spec.Position] = true
				faults = append(faults, Fault{
					Position: spec.Position, Message: fmt.Sprintf("the subject %q does not begin with the fleet's name, as `broker: {names: fleet}` of fleet.yaml demands", spec.Requests),
					Hint: "write " + f.Name + "." + strings.TrimPrefix(spec.Requests, "agents."),
				})
			}
		}
	}
	if faults == nil {
		return nil
	}
	return &strictyaml.Error{Faults: faults}
}
