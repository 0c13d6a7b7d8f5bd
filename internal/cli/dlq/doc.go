// Package dlq implements `agentd dlq`: it lists the dead letters of the running
// agents, the requests to durable capabilities that could not be served, and
// puts them back or drops them.
package dlq
