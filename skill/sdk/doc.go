// Package sdk is the author's side of a process skill: the code behind a
// capability, written as one Go function and run by agentd as a child process.
//
//	func main() {
//		sdk.Main(func(ctx context.Context, in Input) (Output, error) { … })
//	}
//
// # Contract
//
// A process skill in any language keeps this contract; the package keeps it
// for Go programs.
//
//   - stdin holds the payload: one JSON value, then end of file. That of a call
//     without arguments is null, or nothing.
//   - stdout takes the result: one JSON value, with exit code 0.
//   - stderr takes log lines. agentd logs them and never sends them on.
//   - Another exit code is a failure. The caller then sees a generic message,
//     unless stdout holds {"error":{"message":"…","retryable":false}}: a
//     message that the author wrote for the caller, see [Fail].
//   - Exit code 75 (EX_TEMPFAIL of sysexits.h) is a failure that may pass:
//     the same call can succeed later. The retryable member says the same,
//     for launchers that hide the exit code, as `go run` does.
//   - SIGTERM says that the call was cancelled or that its deadline passed.
//
// The environment describes the call: who calls what, until when, under which
// ids, tenant, session, idempotency key and trace. [Environment] is the same,
// typed, and names the variables.
//
// # Calling other agents
//
// [RequestAgent] calls a capability of a peer through the skill's agent, at AGENTD_URL.
// The token in AGENTD_CALL makes it part of the running call: the nested call inherits the
// deadline, the parent message, the trace and the tenant, and ends with that call.
//
// # Workers
//
// A program that agent.yaml declares as a worker stays, and serves many calls over its
// standard input and output, as docs/worker-protocol.md specifies. [Main] and [Serve] do so by
// themselves: the same program is a process or a worker. [Concurrent] lets it serve several
// calls at once.
//
// # Progress
//
// [Progress] reports to the caller how far the skill is, where the capability says
// `progress: true` and the caller asks.
//
// The package needs the standard library only: `go run` of a skill compiles fast.
package sdk
