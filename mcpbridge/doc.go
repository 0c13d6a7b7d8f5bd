// Package mcpbridge serves the capabilities that an agent may call to clients of the
// Model Context Protocol, as tools: to Claude Code, Cursor, an SDK. Each call has what
// every call of the agent has: schemas at both ends, permissions, approvals, limits, the
// proof of contracts, records.
//
// A [Bridge] has one server for each [Client]. [Bridge.ServeStream] serves it over stdio;
// package mcphttp over HTTP.
package mcpbridge
