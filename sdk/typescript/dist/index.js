/**
 * Skills and clients of agentd.
 *
 * Inside a skill: {@link serve}, {@link Call}, {@link SkillError}. Outside: {@link connect}, {@link Client}, {@link unwrap}.
 *
 * @packageDocumentation
 */
export { currentCall } from "./call.js";
export { Client, connect } from "./client.js";
export { AgentdError, CallError, ConnectionFailed, JsonError, RefusedError, SkillError, ViolationError } from "./errors.js";
export { parse as parseJson, stringify as stringifyJson } from "./json.js";
export { unwrap } from "./result.js";
export { serve } from "./skill.js";
