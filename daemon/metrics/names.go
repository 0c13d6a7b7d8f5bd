package metrics

// A Type is how the values of a metric behave. The set is closed.
type Type string

// The types.
const (
	// Counter only grows, and begins with 0 when the process starts.
	Counter Type = "counter"
	// Gauge is a state at the moment of the scrape.
	Gauge Type = "gauge"
	// Histogram counts values by their size, in classic buckets and as a native histogram.
	Histogram Type = "histogram"
)

// Units of metrics, as they stand at the end of names.
const (
	seconds = "seconds"
	bytes   = "bytes"
)

// Other is the value of a label in place of a name that is in none of the agent's files.
const Other = "other"

// System is rpc.system.name in the terms of OpenTelemetry.
const System = "agentd"

// Labels, in the order in which metrics have them. Every metric of an agent has LabelAgent first.
const (
	LabelAgent      = "agent"
	LabelRole       = "role"
	LabelPeer       = "peer"
	LabelCapability = "capability"
	LabelStatus     = "status"
	LabelCode       = "code"
	LabelSide       = "side"
	LabelState      = "state"
	LabelVerdict    = "verdict"
	LabelWitness    = "witness"
	LabelBroker     = "broker"
	LabelSkill      = "skill"
	LabelClient     = "client"
	LabelName       = "name"
	LabelSignal     = "signal"
	LabelReason     = "reason"
	// Those of OpenTelemetry's conventions for RPC, as Prometheus spells them.
	LabelSystem    = "rpc_system_name"
	LabelMethod    = "rpc_method"
	LabelRPCStatus = "rpc_response_status_code"
	// And those for generative AI.
	LabelOperation = "gen_ai_operation_name"
	LabelProvider  = "gen_ai_provider_name"
	LabelModel     = "gen_ai_request_model"
	LabelTokenType = "gen_ai_token_type" //nolint:gosec // no credentials: words of a model
	// Those of the build.
	LabelVersion   = "version"
	LabelGoVersion = "goversion"
)

// The names of the metrics.
const (
	CallsTotal         = "agentd_calls_total"
	ClientCallDuration = "rpc_client_call_duration_seconds"
	ServerCallDuration = "rpc_server_call_duration_seconds"
	SlowRequestsTotal  = "agentd_slow_requests_total"
	RetriesTotal       = "agentd_call_retries_total"
	RateLimitedTotal   = "agentd_rate_limited_total"
	ViolationsTotal    = "agentd_schema_violations_total"
	TokenUsage         = "gen_ai_client_token_usage" //nolint:gosec // no credentials: words of a model

	CallsPending        = "agentd_calls_pending"
	RequestsRunning     = "agentd_requests_running"
	RequestsWaiting     = "agentd_requests_waiting"
	RequestsWaitingSize = "agentd_requests_waiting_bytes"
	BreakerState        = "agentd_breaker_state"
	BreakerOpenedTotal  = "agentd_breaker_opened_total"
	DriftVerdicts       = "agentd_drift_verdicts"
	ApprovalsWaiting    = "agentd_approvals_waiting"
	ApprovalsOldest     = "agentd_approvals_oldest_seconds"

	AuditAppendDuration = "agentd_audit_append_duration_seconds"
	AuditBacklog        = "agentd_audit_backlog"
	AuditRefusing       = "agentd_audit_refusing"
	AuditRefusedTotal   = "agentd_audit_refused_total"
	AuditLostTotal      = "agentd_audit_lost_total"
	AuditRecordsTotal   = "agentd_audit_records_total"
	AuditUnsigned       = "agentd_audit_unsigned_records"
	AuditCheckpointAge  = "agentd_audit_checkpoint_age_seconds"
	AuditWitnessLag     = "agentd_audit_witness_lag_seconds"

	BrokerConnected       = "agentd_broker_connected"
	BrokerRoundTrip       = "agentd_broker_round_trip_seconds"
	BrokerReconnectsTotal = "agentd_broker_reconnects_total"
	MessagesDroppedTotal  = "agentd_messages_dropped_total"
	QueueWaiting          = "agentd_queue_waiting"
	QueueInFlight         = "agentd_queue_in_flight"
	QueueRedelivered      = "agentd_queue_redelivered"
	DeadLetters           = "agentd_dead_letters"

	SkillStartsTotal      = "agentd_skill_starts_total"
	SkillProcesses        = "agentd_skill_processes"
	SkillCPUTotal         = "agentd_skill_cpu_seconds_total"
	SkillResident         = "agentd_skill_resident_memory_bytes"
	WorkerInstances       = "agentd_worker_instances"
	WorkerServing         = "agentd_worker_serving"
	WorkerRunning         = "agentd_worker_calls_running"
	WorkerWaiting         = "agentd_worker_calls_waiting"
	WorkerRestartsTotal   = "agentd_worker_restarts_total"
	WorkerRecycledTotal   = "agentd_worker_recycled_total"
	DescendantsEndedTotal = "agentd_descendants_ended_total"

	MCPSessions         = "agentd_mcp_sessions"
	MCPCallsPending     = "agentd_mcp_calls_pending"
	ControlCallsPending = "agentd_control_calls_pending"

	TelemetryLost = "agentd_telemetry_lost_total"

	Ready     = "agentd_ready"
	Condition = "agentd_condition"
	BuildInfo = "agentd_build_info"
)

// A Metric is what is known of one metric besides its values.
type Metric struct {
	Name   string
	Type   Type
	Unit   string   // of the values; "" counts things
	Labels []string // besides LabelAgent
	Help   string
	// Source is where the values come from, for whoever reads them in another place too.
	Source string
}

// All lists the metrics of agents, in the order of docs/metrics.md.
func All() []Metric {
	all := callMetrics()
	all = append(all, loadMetrics()...)
	all = append(all, auditMetrics()...)
	all = append(all, brokerMetrics()...)
	all = append(all, processMetrics()...)
	return append(all, stateMetrics()...)
}

func labels(names ...string) []string { return names }

// callMetrics are those that every call moves.
func callMetrics() []Metric {
	return []Metric{
		{CallsTotal, Counter, "", labels(LabelRole, LabelPeer, LabelCapability, LabelStatus, LabelCode),
			"Calls that have ended, at this end: role caller or callee. code is empty where status is ok.", "rpc_call records"},
		{ClientCallDuration, Histogram, seconds, labels(LabelSystem, LabelMethod, LabelPeer, LabelRPCStatus),
			"How long calls of this agent took, with their retries: rpc.client.call.duration of OpenTelemetry. rpc_method is the capability.", "latencyMs of rpc_call records"},
		{ServerCallDuration, Histogram, seconds, labels(LabelSystem, LabelMethod, LabelPeer, LabelRPCStatus),
			"How long requests to this agent took, with their wait: rpc.server.call.duration of OpenTelemetry. rpc_method is the capability.", "latencyMs of rpc_call records"},
		{SlowRequestsTotal, Counter, "", labels(LabelCapability),
			"Requests to this agent that took longer than their objective (monitoring.objectives of agent.yaml, by default a second).", "slow of status"},
		{RetriesTotal, Counter, "", labels(LabelPeer, LabelCapability),
			"Attempts of this agent's calls after the first one.", "retried of rpc_call records"},
		{RateLimitedTotal, Counter, "", labels(LabelRole, LabelPeer, LabelCapability),
			"Attempts and requests that a rate limit has refused.", "code of rpc_call records"},
		{ViolationsTotal, Counter, "", labels(LabelSide, LabelPeer, LabelCapability),
			"Payloads that this end has found to break their schema, by side: request or response.", "schema_violation records"},
		{TokenUsage, Histogram, "", labels(LabelOperation, LabelProvider, LabelModel, LabelTokenType, LabelCapability),
			"Tokens of requests to language models that skills have reported, by type: input or output. The sum is what was used. gen_ai.client.token.usage of OpenTelemetry.", "the skills' reports"},
	}
}

// loadMetrics are about calls that have not ended, and what they meet.
func loadMetrics() []Metric {
	return []Metric{
		{CallsPending, Gauge, "", nil, "Calls of this agent that wait for a reply.", "status"},
		{RequestsRunning, Gauge, "", labels(LabelCapability), "Requests whose skill runs.", "status"},
		{RequestsWaiting, Gauge, "", labels(LabelCapability), "Requests that wait for their turn in this process.", "status"},
		{RequestsWaitingSize, Gauge, bytes, labels(LabelCapability), "The size of the requests that wait in this process.", "status"},
		{BreakerState, Gauge, "", labels(LabelPeer, LabelCapability, LabelState), "Circuit breakers in a state (closed, open, half-open): 1 or 0 for a known pair.", "status"},
		{BreakerOpenedTotal, Counter, "", labels(LabelPeer, LabelCapability), "How often a circuit breaker has opened.", "status"},
		{DriftVerdicts, Gauge, "", labels(LabelPeer, LabelVerdict), "Capabilities of a peer that have been called, by what the drift gate knows: proven, unproven or refused.", "status"},
		{ApprovalsWaiting, Gauge, "", labels(LabelRole), "Calls that wait for a person's decision.", "status"},
		{ApprovalsOldest, Gauge, seconds, labels(LabelRole), "For how long the oldest of them has waited; 0 where none waits.", "status"},
	}
}

func auditMetrics() []Metric {
	return []Metric{
		{AuditAppendDuration, Histogram, seconds, nil, "How long the audit log took to make records durable, a value for each append of one or several.", "the audit log"},
		{AuditBacklog, Gauge, "", nil, "Records of ended calls that wait for the disk.", "status"},
		{AuditRefusing, Gauge, "", nil, "1 while the audit log takes no records, so that calls are refused (or go on without records, by audit.onFailure).", "status"},
		{AuditRefusedTotal, Counter, "", nil, "Appends that the audit log has not taken.", "status"},
		{AuditLostTotal, Counter, "", nil, "Records of ended calls that were dropped; the log has a gap record for them.", "status"},
		{AuditRecordsTotal, Counter, "", nil, "The number of the newest durable record.", "status"},
		{AuditUnsigned, Gauge, "", nil, "Records after the newest checkpoint.", "status"},
		{AuditCheckpointAge, Gauge, seconds, nil, "For how long records have waited for a checkpoint; 0 where the newest one covers them all.", "status"},
		{AuditWitnessLag, Gauge, seconds, labels(LabelWitness), "For how long a witness has not co-signed; 0 where its last answer was a signature.", "status"},
	}
}

func brokerMetrics() []Metric {
	return []Metric{
		{BrokerConnected, Gauge, "", labels(LabelBroker), "1 while this process is connected to a broker: nats, or jetstream where that is a connection of its own.", "status"},
		{BrokerRoundTrip, Gauge, seconds, labels(LabelBroker), "The round trip to the broker and back, measured by the scrape; absent while there is no connection.", "a ping"},
		{BrokerReconnectsTotal, Counter, "", labels(LabelBroker), "How often the connection was made again.", "status"},
		{MessagesDroppedTotal, Counter, "", nil, "Messages that came faster than they could be taken or refused (slow consumer).", "status"},
		{QueueWaiting, Gauge, "", nil, "Durable requests that JetStream keeps and has not delivered.", "JetStream"},
		{QueueInFlight, Gauge, "", nil, "Durable requests that are delivered and not acknowledged.", "JetStream"},
		{QueueRedelivered, Gauge, "", nil, "Durable requests in flight that were delivered before.", "JetStream"},
		{DeadLetters, Gauge, "", nil, "Durable requests that the queue has given up on, and nobody has redriven or dropped.", "JetStream"},
	}
}

func processMetrics() []Metric {
	return []Metric{
		{SkillStartsTotal, Counter, "", labels(LabelSkill), "Processes that were started for a skill.", "status"},
		{SkillProcesses, Gauge, "", labels(LabelSkill), "Processes of a skill that run.", "status"},
		{SkillCPUTotal, Counter, seconds, labels(LabelSkill), "Processor time of a skill's processes, those that have ended included.", "status"},
		{SkillResident, Gauge, bytes, labels(LabelSkill), "Resident memory of a skill's processes that run.", "status"},
		{WorkerInstances, Gauge, "", labels(LabelSkill), "Processes that a worker should have.", "status"},
		{WorkerServing, Gauge, "", labels(LabelSkill), "Processes of a worker that serve.", "status"},
		{WorkerRunning, Gauge, "", labels(LabelSkill), "Calls that a worker serves.", "status"},
		{WorkerWaiting, Gauge, "", labels(LabelSkill), "Calls that wait for a process of a worker.", "status"},
		{WorkerRestartsTotal, Counter, "", labels(LabelSkill), "Processes of a worker that were replaced after a fault; a reload begins anew.", "status"},
		{WorkerRecycledTotal, Counter, "", labels(LabelSkill), "Processes of a worker that had served long enough; a reload begins anew.", "status"},
		{DescendantsEndedTotal, Counter, "", nil, "Processes that skills left running, and that agentd has ended.", "status"},
	}
}

func stateMetrics() []Metric {
	return []Metric{
		{MCPSessions, Gauge, "", labels(LabelClient), "Sessions of the Model Context Protocol that are open.", "status"},
		{MCPCallsPending, Gauge, "", labels(LabelClient), "Calls of MCP clients that run or wait.", "status"},
		{ControlCallsPending, Gauge, "", labels(LabelClient), "Calls of clients of the control API that run or wait.", "status"},
		{TelemetryLost, Counter, "", labels(LabelSignal, LabelReason), "Spans (signal traces) and lines of the log (signal logs; agent is empty where several share the process) that never reached their collector, by reason: queue_full, refused or unsent (at the end).", "the condition telemetry"},
		{Ready, Gauge, "", nil, "1 while the agent serves every call, as /readyz says.", "readiness"},
		{Condition, Gauge, "", labels(LabelName), "What is wrong now: the number of conditions of each kind, 0 where there is none.", "status"},
		{BuildInfo, Gauge, "", labels(LabelVersion, LabelGoVersion), "1, for the version of agentd and that of Go.", "the program"},
	}
}
