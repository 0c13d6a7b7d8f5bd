// Package natstest gives tests a real nats-server inside their process, which
// they can stop and start again on the same port, and a TCP proxy that
// breaks the link to it.
package natstest
