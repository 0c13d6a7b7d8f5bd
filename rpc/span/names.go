package span

// The names of attributes. Those without agentd in them are of OpenTelemetry's semantic
// conventions: RPC (1.45), messaging, and those of generative AI and of the Model Context
// Protocol.
const (
	// RPCSystem is always [System].
	RPCSystem = "rpc.system.name"
	// RPCMethod is <agent>/<capability>, or [OtherMethod] for one that nobody declares.
	RPCMethod = "rpc.method"
	// RPCStatus is a call's code, or [StatusOK].
	RPCStatus = "rpc.response.status_code"
	// ErrorType is the code of an error.
	ErrorType = "error.type"
	// ServerAddress and ClientAddress are the agents that are called and that call. Of a
	// request without a proof of its sender, ClientClaimed is the name that it gives.
	ServerAddress = "server.address"
	ClientAddress = "client.address"
	ClientClaimed = "agentd.client.claimed"

	MessagingSystem        = "messaging.system"
	MessagingOperation     = "messaging.operation.name"
	MessagingOperationType = "messaging.operation.type"
	MessagingDestination   = "messaging.destination.name"
	MessagingMessageID     = "messaging.message.id"
	MessagingConversation  = "messaging.message.conversation_id"

	MCPMethod       = "mcp.method.name"
	MCPSession      = "mcp.session.id"
	MCPProtocol     = "mcp.protocol.version"
	MCPResource     = "mcp.resource.uri"
	NetworkProtocol = "network.protocol.name"

	GenAIOperation = "gen_ai.operation.name"
	GenAITool      = "gen_ai.tool.name"
	GenAIToolType  = "gen_ai.tool.type"
	// GenAIMaxTokens and GenAIModel are of a question to a client's model: what it was asked
	// for, and who it says has answered.
	GenAIMaxTokens = "gen_ai.request.max_tokens" //nolint:gosec // no credentials: words of a model
	GenAIModel     = "gen_ai.response.model"
	// These are of a skill's request to a model, by the skill's word.
	GenAIProvider     = "gen_ai.provider.name"
	GenAIRequestModel = "gen_ai.request.model"
	GenAIInputTokens  = "gen_ai.usage.input_tokens"  //nolint:gosec // no credentials: words of a model
	GenAIOutputTokens = "gen_ai.usage.output_tokens" //nolint:gosec // no credentials: words of a model

	// SessionID is the session of the caller's skill.
	SessionID = "session.id"

	// Mode is what the caller waits for, and Attempt which of its call's requests or
	// deliveries this one is. Attempts counts them.
	Mode     = "agentd.mode"
	Attempt  = "agentd.attempt"
	Attempts = "agentd.attempts"
	// Tenant is on whose behalf, and Origin who asked the agent for the call.
	Tenant = "agentd.tenant"
	Origin = "agentd.origin"
	// Replayed is "true" where the answer is that of an earlier request, and Unproven why
	// the call went on without a proof of the contract.
	Replayed = "agentd.replayed"
	Unproven = "agentd.unproven"
	// DetectedBy is the agent whose agentd refused the call.
	DetectedBy = "agentd.detected_by"
	// Skill is what runs the capability, and SkillKind how: worker, process, http, mcp,
	// action or go.
	Skill     = "agentd.skill.name"
	SkillKind = "agentd.skill.kind"
	// ToolSet is the capability of the registry that a tool belongs to.
	ToolSet = "agentd.tool.capability"
	// MCPPeer is the MCP client or server, as the agent's file names it.
	MCPPeer = "agentd.mcp.peer"
)

// Values of attributes.
const (
	System      = "agentd"
	StatusOK    = "OK"
	OtherMethod = "_OTHER"

	OperationSend    = "send"
	OperationProcess = "process"

	// ExecuteTool is the operation of a tool's call.
	ExecuteTool = "execute_tool"
	// Chat is the operation of a question to a model.
	Chat = "chat"
	// ToolError is the error of a tool that says itself that it has failed.
	ToolError = "tool_error"
)

// Names of spans that have no attribute of that name, and of events.
const (
	// NameQueue is the wait for a turn at the callee.
	NameQueue = "queue"
	// NameAwait is the wait for the answer to an asynchronous call, before its method.
	NameAwait = "await"
	// NameRun is a skill's run, before its name.
	NameRun = "run"
	// EventRetry is the end of an attempt that another one follows.
	EventRetry = "retry"
)
