package control

import (
	"fmt"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// ApprovalsWaiting counts the calls that wait for a person at an agent.
type ApprovalsWaiting struct {
	// Role is the agent's in them.
	Role rpc.Role `json:"role"`
	// Waiting is how many there are, at least one, and Oldest when the first of them began to
	// wait.
	Waiting int       `json:"waiting"`
	Oldest  time.Time `json:"oldest,omitzero"`
}

// SlowRequests says that too many of the requests for one capability take long.
type SlowRequests struct {
	Capability string `json:"capability"`
	// Share5m and Share1h are which part of its requests took longer than Seconds, in the last five
	// minutes and in the last hour.
	Seconds float64 `json:"seconds"`
	Share5m float64 `json:"share5m"`
	Share1h float64 `json:"share1h"`
}

// String is what is slow, in words.
func (s SlowRequests) String() string {
	return fmt.Sprintf("%.0f%% of the requests for %s in the last 5 minutes took longer than %gs, and %.0f%% of those in the last hour",
		100*s.Share5m, s.Capability, s.Seconds, 100*s.Share1h)
}

// DriftVerdicts counts the capabilities of a peer that were called, by what the drift gate knows
// of them.
type DriftVerdicts struct {
	Peer envelope.Address `json:"peer"`
	// Proven ones are compatible with what the agent was built against, calls of Unproven ones go
	// on without a proof, and those of Refused ones do not, unless drift is warn.
	Proven   int `json:"proven"`
	Unproven int `json:"unproven"`
	Refused  int `json:"refused"`
}

// An AuditStatus is how an audit log is.
type AuditStatus struct {
	// Records is the number of the newest durable record, and Unsigned how many of them come after
	// the newest checkpoint; UnsignedSince is from when on there are such.
	Records       int64     `json:"records"`
	Unsigned      int64     `json:"unsigned"`
	UnsignedSince time.Time `json:"unsignedSince,omitzero"`
	// Backlog is the number of records that wait for the disk, and Lost that of those that were
	// dropped.
	Backlog int   `json:"backlog"`
	Lost    int64 `json:"lost"`
	// Refusing is set while the log takes no records.
	Refusing bool `json:"refusing"`
	// Witnesses are those that have been asked to co-sign.
	Witnesses []WitnessStatus `json:"witnesses,omitempty"`
}

// A WitnessStatus is what a witness has answered last.
type WitnessStatus struct {
	Witness string `json:"witness"`
	// UnsignedSince is from when on it has not co-signed; zero where it has. Error says why not.
	UnsignedSince time.Time `json:"unsignedSince,omitzero"`
	Error         string    `json:"error,omitempty"`
}

// A Broker is one connection to a broker.
type Broker struct {
	// Broker is nats, or jetstream for the connection to an operator's JetStream.
	Broker    string `json:"broker"`
	Connected bool   `json:"connected"`
	// Reconnects is how often it was made again.
	Reconnects uint64 `json:"reconnects"`
}

// Processes are the programs that were started for one skill.
type Processes struct {
	// Skill is its name in agent.yaml.
	Skill string `json:"skill"`
	// Starts counts them, and Running is how many there are now.
	Starts  int64 `json:"starts"`
	Running int   `json:"running"`
	// CPUSeconds is the processor time of all of them, ResidentBytes the memory of those that run.
	// Both are 0 on systems that do not show them.
	CPUSeconds    float64 `json:"cpuSeconds"`
	ResidentBytes int64   `json:"residentBytes"`
}
