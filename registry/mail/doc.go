// Package mail is the capability mail: mails from a configured sender, to the recipients
// that the agent's file allows.
//
// Package internal/mailer does the work and says what it guards against. A model in a
// loop is held to a number of mails an hour.
package mail
