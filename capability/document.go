package capability

import (
	"slices"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/strictyaml"
)

// MaxNameBytes bounds a capability's name.
const MaxNameBytes = 128

type (
	// A LoadError holds every fault of a load, each at its place.
	LoadError = strictyaml.Error
	// A Fault is one thing wrong with a file.
	Fault = strictyaml.Fault
	// A Position is a place in a file: its line, column and JSON pointer.
	Position = strictyaml.Position
)

// A Document holds one agent's capabilities.yaml. It is immutable once loaded
// and safe for concurrent use.
type Document struct {
	// Path is the name that the file was loaded under.
	Path string
	// Version is the format's version, always 1.
	Version int
	// Agent is the agent that offers the capabilities.
	Agent envelope.Address
	// Transports are the ways to reach the agent, in order of preference. At least one.
	Transports []TransportSpec
	// Capabilities are in declared order. At least one.
	Capabilities []*Capability

	byName map[string]*Capability
	digest string
}

// Lookup returns the capability of exactly that name.
func (d *Document) Lookup(name string) (*Capability, bool) {
	c, ok := d.byName[name]
	return c, ok
}

// LookupID returns the capability with that ID. It fails where several have it.
func (d *Document) LookupID(id string) (*Capability, bool) {
	var found *Capability
	for _, c := range d.Capabilities {
		if c.ID != id || id == "" {
			continue
		}
		if found != nil {
			return nil, false
		}
		found = c
	}
	return found, found != nil
}

// Names returns the capabilities' names in declared order.
func (d *Document) Names() []string {
	names := make([]string, len(d.Capabilities))
	for i, c := range d.Capabilities {
		names[i] = c.Name
	}
	return names
}

// KeepsRequests reports whether the requests of any capability must outlive
// the callee; see [DeliveryDurable].
func (d *Document) KeepsRequests() bool {
	return slices.ContainsFunc(d.Capabilities, func(c *Capability) bool { return c.Delivery == DeliveryDurable })
}

// PublishesProgress reports whether any capability's skill may publish progress.
func (d *Document) PublishesProgress() bool {
	return slices.ContainsFunc(d.Capabilities, func(c *Capability) bool { return c.Progress })
}

// Digest covers every capability's digest: it changes when a contract does,
// and with nothing else. See the package comment.
func (d *Document) Digest() string { return d.digest }

// A Capability is one named, typed function that an agent offers.
type Capability struct {
	// Name matches ^[a-z0-9][a-z0-9_-]*$, in either case, and is at most
	// [MaxNameBytes] long. No two names of a document differ only in case.
	Name string
	// Title is the name of an action for people, such as "Get Weather"; "" for others.
	Title string
	// Description is for people and models; it promises nothing.
	Description string
	// Timeout bounds one call, as declared; the caller clamps it. 0 leaves
	// the timeout to the caller.
	Timeout time.Duration
	// Idempotent allows callers to retry.
	Idempotent bool
	// Since is the release that introduced the contract, as the owner wrote
	// it.
	Since string
	// Skill names the code behind the capability; it defaults to Name.
	Skill string
	// Input and Output are the contracts of requests and responses. Nil is
	// loose JSON: nothing is checked on that side.
	Input, Output *Contract
	// SchemaProfile says by which rules both contracts are read.
	SchemaProfile SchemaProfile
	// Result is what the responses look like to a client of the Model Context Protocol.
	Result ResultForm
	// Asks is what the capability may ask a client of that protocol for, sorted; nil is nothing.
	Asks []Ask
	// Digest covers the name, the profile and both contracts. See the package comment.
	Digest string
	// Position is where the capability stands in its file.
	Position Position

	// The following fields are carried and not enforced here; see the package
	// comment.

	// Delivery selects how requests are stored until they are served.
	Delivery Delivery
	// Progress lets the skill publish progress to callers that ask for it.
	Progress bool
	// ID, Version and Category are for the owner's use; "" if not given.
	ID, Version, Category string
	// Permissions are what the skill needs, such as network:read. Nil means that the file
	// does not say; an empty list, that it needs nothing.
	Permissions []string
	// RateLimit bounds calls over time; nil is no limit.
	RateLimit *RateLimit
	// RetryPolicy is how a caller may retry; nil is one attempt.
	RetryPolicy *RetryPolicy
	// Concurrency bounds simultaneous runs of the skill; 0 is no bound.
	Concurrency int
	// Cost estimates one call in the owner's units. Values are not negative.
	Cost map[string]float64
	// Callers are the agents that may call, as addresses or globs over them;
	// nil leaves it to the permission rules.
	Callers []string
}

// A Delivery selects how a request is stored until the callee serves it.
type Delivery string

const (
	// DeliveryDefault is the transport's own behaviour.
	DeliveryDefault Delivery = ""
	// DeliveryDurable stores requests so that they survive a restart of the
	// callee.
	DeliveryDurable Delivery = "durable"
)

// A RateLimit allows Requests per Period, with bursts up to Burst.
type RateLimit struct {
	// Requests is at least 1.
	Requests int
	// Period is positive. The default is one second.
	Period time.Duration
	// Burst is at least 1; it defaults to Requests.
	Burst int
	// Shared makes the callee's replicas count together instead of each for
	// itself.
	Shared bool
}

// A RetryPolicy is an exponential backoff.
type RetryPolicy struct {
	// MaxAttempts counts the first call too. From 1 to 100.
	MaxAttempts int
	// BackoffMultiplier is at least 1.
	BackoffMultiplier float64
	// InitialDelay and MaxDelay bound the waits between attempts.
	InitialDelay, MaxDelay time.Duration
	// RetryOn lists failure classes out of [RetryClasses]; nil is all of
	// them.
	RetryOn []string
}

// The classes of failures that a retry policy may name.
const (
	RetryTimeout      = "timeout"
	RetryNetworkError = "network_error"
	RetryRateLimit    = "rate_limit"
	RetryBusy         = "busy"
	RetryInternal     = "internal_error"
	RetryHandler      = "handler_error"
)

// RetryClasses returns all classes. Package rpc assigns errors to them.
func RetryClasses() []string {
	return []string{RetryTimeout, RetryNetworkError, RetryRateLimit, RetryBusy, RetryInternal, RetryHandler}
}
