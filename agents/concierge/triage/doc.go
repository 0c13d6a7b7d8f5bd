// Package triage decides how urgent a pull request is.
//
// [Triage] calls two peers through their generated clients: pr-reviewer for a
// review, then librarian for the notes on the most severe findings. A failed
// review fails the triage, with the reviewer's message, because nothing can
// be judged without it. Failed notes do not: the result comes without them
// and mentions it among its reasons.
package triage
