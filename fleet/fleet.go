package fleet

import (
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
)

type (
	// A LoadError holds every fault of a load, each at its place.
	LoadError = capability.LoadError
	// A Fault is one thing wrong with a file.
	Fault = capability.Fault
	// A Position is a place in a file: line, column, JSON pointer.
	Position = capability.Position
)

// A Fleet holds the agents that one fleet.yaml declares. It is immutable once
// loaded and safe for concurrent use.
type Fleet struct {
	// Root is the absolute path of the directory that holds fleet.yaml.
	Root string
	// Version is the format's version, always 1.
	Version int
	// Name is required; Description may be empty.
	Name, Description string
	// Runtime holds the versions of the reference runtime that the fleet
	// requires. They are kept for that runtime; agentd does not check them.
	Runtime Runtime
	// Members are in declared order. There may be none.
	Members []*Member
	// Environments are in declared order. If the file declares none, the list
	// holds the implicit one, "default".
	Environments []*Environment
	// Deploy describes how the fleet is rolled out.
	Deploy Deploy
	// RPC holds fleet-wide settings for calls.
	RPC RPC
	// Broker holds the settings for brokers.
	Broker Broker
	// Identities describe how agents prove their identity, from
	// [IdentitiesName].
	Identities []Identity
	// Hosts are remote control planes.
	Hosts []Host

	shown      string      // the root as it was given to Load
	opts       LoadOptions // for Reload, as is cache
	cache      *cache
	members    map[string]*Member
	identities map[envelope.Address]*PeerAuth
}

// Member returns the member with that id.
func (f *Fleet) Member(id string) (*Member, bool) {
	m, ok := f.members[id]
	return m, ok
}

// Show returns the form in which faults name an absolute path: relative to the
// folder that the fleet was loaded from, if the path is below it.
func (f *Fleet) Show(abs string) string { return paths{root: f.Root, shown: f.shown}.name(abs) }

// Runtime holds version ranges; "" is any version.
type Runtime struct {
	Declaragent, Bun string
}

// RPC are fleet-wide settings for calls.
type RPC struct {
	// StampFleetVersion puts the fleet's version on every envelope.
	StampFleetVersion bool
	// MinFleetVersion refuses callers from an older fleet, and callers that
	// send no version. The zero value refuses nobody.
	MinFleetVersion envelope.FleetVersion
}

// Broker are fleet-wide settings for brokers.
type Broker struct {
	// FleetNames puts the fleet's name into everything that its agents use on a broker.
	FleetNames bool
	// Position is where the block stands.
	Position Position
}

// A Member is one agent of a fleet.
type Member struct {
	// ID is the agent's id: an [envelope.Address] without its scheme.
	ID string
	// Address is agent://<ID>.
	Address envelope.Address
	// Dir is the absolute path of the agent's directory.
	Dir string
	// Env names the member's environment.
	Env string
	// Environment is that environment. Never nil.
	Environment *Environment
	// Agent is the member's agent.yaml. Never nil.
	Agent *AgentFile
	// Capabilities is nil if the member only calls others.
	Capabilities *capability.Document
	// PeersFile is the absolute path that Peers were read from, "" for none.
	PeersFile string
	// Peers are the agents that the member may call, in declared order. Members that read
	// the same file share them.
	Peers []*Peer
	// DeployTo is nil if the file does not say.
	DeployTo *Placement
	// SessionDB and AuditDB are absolute paths, "" for the default place.
	SessionDB, AuditDB string
	// Position is where fleet.yaml declares the member.
	Position Position

	peers map[envelope.Address]*Peer // Peers, by address
}

// ClientOnly reports whether the member offers no capabilities.
func (m *Member) ClientOnly() bool { return m.Capabilities == nil }

// Peer returns the peer with that address.
func (m *Member) Peer(a envelope.Address) (*Peer, bool) {
	p, ok := m.peers[a]
	return p, ok
}

// EnvFiles returns the absolute paths of the member's .env files, in order:
// those of the environment's override for the member, or else those of the
// environment.
func (m *Member) EnvFiles() []string {
	if o, ok := m.Environment.Overrides[m.ID]; ok && o.EnvFiles != nil {
		return o.EnvFiles
	}
	return m.Environment.EnvFiles
}

// A Peer is an agent that a member may call.
type Peer struct {
	// Address is the peer's.
	Address envelope.Address
	// Transports are the ways to reach it, in order of preference. At least one.
	Transports []capability.TransportSpec
	// Auth describes how envelopes to and from the peer are authenticated;
	// nil if they are not.
	Auth *PeerAuth
	// Document holds the capabilities that the caller expects of the peer:
	// from the file that the peers file pins, or else from the member with
	// this address. Nil if there is neither.
	Document *capability.Document
	// Pinned reports whether the peers file names Document itself.
	Pinned bool
	// InFleet reports whether the peer is a member of the fleet.
	InFleet bool
	// Foreign reports whether another system than agentd may run the peer: it is no
	// member, or its agent.yaml names skill documents of the reference runtime.
	Foreign bool
	// ReplyTopics are where the peer takes the answers to its own calls, if not in
	// the inbox that its id implies. One that ends in .> covers all below.
	ReplyTopics []string
	// Tenants are those that the peer may name in its calls to the member. Nil, when the
	// file has no such list, see [AgentFile.Tenants] and package policy.
	Tenants []string
	// MinSchemaVersion is the oldest contract the caller accepts; "" is any.
	MinSchemaVersion string
	// Position is where the peers file declares the peer.
	Position Position
}

// An Environment is a named set of shared files, with inheritance applied.
// Paths are absolute; "" is none.
type Environment struct {
	// Name is the environment's key.
	Name string
	// Chain lists the environments that were merged into it, from the most distant
	// ancestor to itself.
	Chain []string
	// PeersRef is the peers file of members without one of their own.
	PeersRef string
	// SecretsRef and ChannelsRef are kept for the programs that read them;
	// agentd does not.
	SecretsRef, ChannelsRef string
	// EnvFiles are .env files for every member of the environment.
	EnvFiles []string
	// Overrides are keyed by member id. An override replaces an inherited one.
	Overrides map[string]Override
	// Position is where fleet.yaml declares it; zero for the implicit one.
	Position Position

	refs []fileRef
}

// An Override is what an environment changes for one member. A nil list
// changes nothing.
type Override struct {
	// EnvFiles replace the environment's.
	EnvFiles []string
}

// Deploy describes how the fleet is rolled out. It is kept for tools that
// deploy; agentd does not.
type Deploy struct {
	// Strategy is rolling, all-or-nothing, per-agent, canary, or "".
	Strategy          string
	RollbackOnFailure bool
	// HealthTimeout is 0 and HealthProbe "" if the file does not say.
	HealthTimeout time.Duration
	HealthProbe   string
	// Targets maps a target's name to its kind. Other keys of a target belong
	// to the tool that deploys there.
	Targets map[string]string
}

// A Placement says where a member is deployed.
type Placement struct {
	// Target is a key of [Deploy.Targets].
	Target string
	// MinInstances and MaxInstances are 0 if the file does not say.
	MinInstances, MaxInstances int
	// Position is where the target is named.
	Position Position
}

// DefaultHostTimeout is a host's timeout if the file does not say.
const DefaultHostTimeout = 5 * time.Second

// A Host is a remote control plane.
type Host struct {
	// Name is unique in the fleet.
	Name string
	// URL is absolute, http or https.
	URL string
	// Bearer is a token or a reference to one (env:NAME, file:/path); "" is none.
	Bearer string
	// Timeout bounds one request. The default is [DefaultHostTimeout].
	Timeout time.Duration
}
