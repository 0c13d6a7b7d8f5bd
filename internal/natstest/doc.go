// Package natstest runs real nats-servers inside a test's process.
//
// A [Server] can be stopped and started again on the same port, alone or in a
// cluster. A [Proxy] in front of it breaks the link in the ways that networks do: it
// stalls bytes without closing anything, or closes connections.
//
// Everything ends with the test that started it.
package natstest
