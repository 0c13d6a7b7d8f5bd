// Package memory carries messages between the agents of one process.
//
// A [Bus] is the broker, to which each agent connects with [Bus.Connect]. Agents in
// other processes cannot reach it; they need package transport/nats.
//
// Each subscription has a bounded queue and one goroutine that calls its handler.
// Publish appends to the queues of all receivers and returns. It takes the bus's
// lock for reading only, so that publishers do not wait for each other, and
// allocates nothing once the queues have grown.
package memory
