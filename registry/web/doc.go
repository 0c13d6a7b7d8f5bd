// Package web is the capability http: requests to the hosts that the agent's file lists.
//
// Package internal/netguard does the work and says what it guards against.
package web
