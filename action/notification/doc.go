// Package notification is the action send-notification: a short message to people whom
// the operator has chosen, by mail or by a web service.
//
// Package internal/notifier does the work and says what it guards against.
package notification
