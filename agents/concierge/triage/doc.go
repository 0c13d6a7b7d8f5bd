// Package triage decides how urgent a pull request is.
//
// [Triage] asks two peers through their generated clients: pr-reviewer for a review, then
// librarian for the notes that belong to the most severe findings. Without a
// review there is nothing to say, so a failed review fails the triage, with
// the reviewer's words. Notes are a service on top: if they fail, the answer
// comes without them and says so among its reasons.
package triage
