// Package monitoring serves what machines ask of running agents, over HTTP: whether the process
// lives, whether the agents are ready, their metrics, and profiles.
//
// Where to look: server.go listens and follows reloads, access.go decides who may ask for what,
// probes.go answers probes.
package monitoring
