// Package notify is the capability notify: short messages to the people whom the agent's
// file names, by mail or by a web service.
//
// Package internal/notifier does the work and says what it guards against. A model in a
// loop is held to a number of messages an hour.
package notify
