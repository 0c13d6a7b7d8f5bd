package wire

import "github.com/agentd/agentd/envelope"

// CapabilitiesName stands for a capability in requests for what an agent
// publishes. It cannot be a capability: their names contain no dots.
const CapabilitiesName = "agentd.capabilities"

// CapabilitiesTopic is where an agent answers requests for its published
// capabilities.
func CapabilitiesTopic(requests string) string { return requests + ".capabilities" }

// ControlTopic is where the processes of a callee take control events. Every
// replica gets every event, because only one of them runs the call in question.
func ControlTopic(requests string) string { return requests + ".control" }

// ChangedTopic is where an agent announces that it serves another contract now. It is not
// below the requests topic, where callers may publish.
func ChangedTopic(requests string) string { return "agentd.changed." + requests }

// ServiceName stands for a capability in requests to one of agentd's own services.
func ServiceName(name string) string { return "agentd." + name }

// ServiceTopic is where an agent takes requests to one of its services.
func ServiceTopic(requests, name string) string { return requests + "." + name }

// QueueGroup is the group in which the replicas of an agent share its requests.
func QueueGroup(a envelope.Address) string { return "agents." + a.ID() }
