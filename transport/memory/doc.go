// Package memory carries messages between the agents of one process.
//
// A [Bus] is the broker; each agent connects to it with [Bus.Connect]. A bus
// exists only inside its process: agents in other processes need the
// transport nats.
package memory
