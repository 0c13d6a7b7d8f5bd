// Package emailsend is the action email-send: a mail to one recipient.
//
// Package internal/mailer does the work and says what it guards against.
package emailsend
