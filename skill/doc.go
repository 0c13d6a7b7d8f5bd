// Package skill runs the code behind a capability. Each kind of skill is an
// [rpc.Handler]: [Func] is a Go function in this process, [Process] a program
// that is started for each call. Package worker, below this one, runs programs that stay,
// which [Process.Start] starts.
//
// # The contract of a process
//
// The payload, one JSON value, comes on standard input, and the answer goes to
// standard output, followed by exit status 0. Standard error goes to the log of
// agentd, line by line. A program that fails exits with another status. It may
// then write {"error":{"message":"…","retryable":true}} to standard output: the
// message is for the caller. Without it the caller learns the exit status and no
// more. Status 75 (EX_TEMPFAIL of sysexits.h) says that a later call may succeed.
//
// When the call is cancelled or its deadline passes, the program's process
// group gets SIGTERM, and SIGKILL after a grace period.
//
// A process with a [sandbox.Sandbox] is confined before its program runs: it reads and
// writes, reaches and starts what a policy grants, and has a temporary folder of its call as
// HOME and TMPDIR. Without one it may do whatever this process may.
//
// The environment is PATH, HOME, TMPDIR, USER and LANG of agentd, what the configuration
// adds, and what follows. All of it is set for each call, to "" where there is nothing
// to say.
//
//	AGENTD_URL              where the agent takes the skill's requests, see package
//	                        skillapi of the daemon
//	AGENTD_CALL             the running call's token; the HTTP header Agentd-Call
//	                        of such a request carries it
//	AGENTD_DEADLINE         when the caller stops waiting, ms since the Unix epoch
//	AGENTD_AGENT            this agent's address
//	AGENTD_CAPABILITY       the capability's name
//	AGENTD_CALLER           the caller's address
//	AGENTD_CALLER_PROVEN    true if the request has proven it, and false
//	AGENTD_CORRELATION_ID   the call's, the same at both ends
//	AGENTD_MESSAGE_ID       the request's, another one for each attempt
//	AGENTD_SESSION_ID       the session of the caller's skill
//	AGENTD_TENANT_ID        the call's tenant
//	AGENTD_IDEMPOTENCY_KEY  the caller's
//	AGENTD_TRACEPARENT      the W3C trace context, also as TRACEPARENT
//	TRACESTATE              what vendors of tracing have added to it
//	AGENTD_HOPS             the calls that led here, this one included
//	AGENTD_FLEET_ROOT       the folder of fleet.yaml
//
// A call with an id or a key that no variable can hold fails.
//
// A skill reports its progress with POST /v1/agent/progress there.
//
// Package sdk, below this one, is the program's side in Go.
package skill
