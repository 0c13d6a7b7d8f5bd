/**
 * Skills and clients of agentd.
 *
 * Inside a skill: {@link serve}, {@link Call}, {@link SkillError}. Outside: {@link connect}, {@link Client}, {@link unwrap}.
 *
 * @packageDocumentation
 */
export { type Call, type CallInfo, type ModelUsage, currentCall } from "./call.js";
export { Client, connect, type ConnectOptions } from "./client.js";
export { AgentdError, CallError, ConnectionFailed, JsonError, type JsonErrorCode, RefusedError, SkillError, ViolationError } from "./errors.js";
export { parse as parseJson, type ReadOptions, stringify as stringifyJson } from "./json.js";
export type { Log, LogFields } from "./log.js";
export type { AbortSignalLike, AwaitOptions, Caller, Mode, RequestOptions, Signal } from "./request.js";
export { type CallFailure, type Failed, type Ok, type Outcome, type ProgressEvent, type Result, type SchemaViolation, unwrap, type Violation } from "./result.js";
export { type Handler, type Handlers, serve, type ServeOptions } from "./skill.js";
export type { ResultStream } from "./stream.js";
