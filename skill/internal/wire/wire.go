package wire

import "encoding/json"

// Version is the version of the protocol.
const Version = 1

// EnvWorker is the variable that says to a program that it runs as a worker: it holds the
// newest version of the protocol that agentd speaks.
const EnvWorker = "AGENTD_WORKER"

// The methods.
const (
	Initialize   = "initialize"   // agentd asks
	Invoke       = "invoke"       // agentd asks
	Ping         = "ping"         // agentd asks
	Shutdown     = "shutdown"     // agentd notifies
	Cancel       = "cancel"       // both notify
	Progress     = "progress"     // both notify
	RequestAgent = "requestAgent" // the worker asks
	ModelUsage   = "modelUsage"   // the worker notifies
)

// The codes of errors. Those of JSON-RPC 2.0 have its meaning.
const (
	ParseError     = -32700
	InvalidRequest = -32600
	MethodNotFound = -32601
	InvalidParams  = -32602
	InternalError  = -32603
	// Failed is the failure of a call with a message for the caller.
	Failed = -32000
	// NotRunning refuses a request in the name of a call that does not run.
	NotRunning = -32001
	// TooMany refuses a request beyond what one call may have in progress.
	TooMany = -32002
	// Cancelled ends a request that was cancelled.
	Cancelled = -32800
)

// An Error is the member error of a response.
type Error struct {
	Code    int       `json:"code"`
	Message string    `json:"message"`
	Data    ErrorData `json:"data,omitzero"`
}

func (e *Error) Error() string { return e.Message }

// ErrorData is the member data of an [Error].
type ErrorData struct {
	// Retryable says of a failed call that the same call may succeed later.
	Retryable bool `json:"retryable,omitempty"`
}

// UnmarshalJSON reads an object, and passes anything else over: data is the sender's.
func (d *ErrorData) UnmarshalJSON(data []byte) error {
	var o struct {
		Retryable bool `json:"retryable"`
	}
	if json.Unmarshal(data, &o) == nil {
		d.Retryable = o.Retryable
	}
	return nil
}

// InitializeParams are what a worker learns before its first call.
type InitializeParams struct {
	ProtocolVersions []int        `json:"protocolVersions"`
	Agent            string       `json:"agent"`
	Skill            string       `json:"skill"`
	FleetRoot        string       `json:"fleetRoot,omitempty"`
	URL              string       `json:"url,omitempty"`
	Capabilities     []Capability `json:"capabilities"`
	Limits           Limits       `json:"limits"`
}

// A Capability is one that a worker is to serve.
type Capability struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	TimeoutMs    int64           `json:"timeoutMs,omitempty"`
	Progress     bool            `json:"progress,omitempty"`
	Idempotent   bool            `json:"idempotent,omitempty"`
}

// Limits are the bounds that agentd holds a worker to.
type Limits struct {
	Concurrency      int `json:"concurrency"`
	MaxMessageBytes  int `json:"maxMessageBytes"`
	MaxPayloadBytes  int `json:"maxPayloadBytes"`
	MaxProgressBytes int `json:"maxProgressBytes"`
	MaxRequests      int `json:"maxRequests"`
	// MaxModelUsages is 0 for an agentd that wants no reports, or does not know them.
	MaxModelUsages int   `json:"maxModelUsages,omitempty"`
	StartTimeoutMs int64 `json:"startTimeoutMs"`
	GraceMs        int64 `json:"graceMs"`
	PingTimeoutMs  int64 `json:"pingTimeoutMs"`
}

// InitializeResult is what a worker says of itself.
type InitializeResult struct {
	ProtocolVersion int `json:"protocolVersion"`
	// Capabilities are those that it serves; nil means all that it was offered.
	Capabilities []string `json:"capabilities,omitempty"`
	// Concurrency is how many calls it serves at once; 0 means 1.
	Concurrency int `json:"concurrency,omitempty"`
}

// InvokeParams are one call.
type InvokeParams struct {
	Capability     string          `json:"capability"`
	Payload        json.RawMessage `json:"payload"`
	Caller         string          `json:"caller,omitempty"`
	CallerProven   bool            `json:"callerProven,omitempty"`
	CorrelationID  string          `json:"correlationId,omitempty"`
	MessageID      string          `json:"messageId,omitempty"`
	SessionID      string          `json:"sessionId,omitempty"`
	TenantID       string          `json:"tenantId,omitempty"`
	IdempotencyKey string          `json:"idempotencyKey,omitempty"`
	Traceparent    string          `json:"traceparent,omitempty"`
	Tracestate     string          `json:"tracestate,omitempty"`
	Hops           int             `json:"hops,omitempty"`
	DeadlineMs     int64           `json:"deadlineMs,omitempty"`
	Event          bool            `json:"event,omitempty"`
	Progress       bool            `json:"progress,omitempty"`
	Token          string          `json:"token,omitempty"`
}

// InvokeResult is the answer to a call.
type InvokeResult struct {
	Answer json.RawMessage `json:"answer"`
}

// CancelParams name the request that is cancelled, by its sender's id.
type CancelParams struct {
	ID json.RawMessage `json:"id"`
	// Reason is agentd's: "deadline" or "caller".
	Reason string `json:"reason,omitempty"`
}

// ProgressParams are a report of the progress of a call, or of a nested one.
type ProgressParams struct {
	// ID is that of the call, and of the request for a nested one.
	ID json.RawMessage `json:"id"`
	// Seq and Attempt count the events of a nested call.
	Seq     int             `json:"seq,omitempty"`
	Attempt int             `json:"attempt,omitempty"`
	Value   json.RawMessage `json:"value"`
}

// ModelUsageParams are a report of what a request to a language model used.
type ModelUsageParams struct {
	// ID is that of the call.
	ID json.RawMessage `json:"id"`
	// Usage is the report, as POST /v1/agent/model-usage has it.
	Usage json.RawMessage `json:"usage"`
}

// RequestAgentParams are a nested call.
type RequestAgentParams struct {
	// Call is the id of the call that it is a part of.
	Call json.RawMessage `json:"call"`
	// Request is the request of POST /v1/request.
	Request json.RawMessage `json:"request"`
	// Progress asks for the nested call's progress.
	Progress bool `json:"progress,omitempty"`
}
