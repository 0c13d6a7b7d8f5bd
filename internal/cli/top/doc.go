// Package top implements `agentd top`: it shows again and again what the agents of a fleet that run
// on this host do, by their control sockets. An agent that ends, hangs or comes back is shown as
// what it is.
package top
