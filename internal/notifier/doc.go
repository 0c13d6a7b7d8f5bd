// Package notifier brings short messages to people whom the operator has chosen, by mail
// or by a web service.
//
// The caller, who may be a language model or a peer, chooses the text and one of the
// configured channels, and nothing else: neither recipients nor URLs. Packages mailer and
// netguard do the sending, and say what they guard against. A webhook is a POST of JSON,
// or of a form, in which the text takes the places that the operator marks: it is put
// into values that are encoded afterwards, so that no text ends its value. Webhooks do not
// follow redirects, and their answers are not shown.
//
// Where to look: config.go reads what the operator lists, notifier.go chooses a channel
// and checks the text, webhook.go posts, template.go fills in.
package notifier
