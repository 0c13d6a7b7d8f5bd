// Package broker runs a nats-server inside this process: the broker of one
// machine, for development and small fleets. Beyond one machine, run
// nats-server itself.
package broker
