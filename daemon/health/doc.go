// Package health keeps what is wrong with a running agent: each condition has a
// cause and a remedy, is logged once when it begins and once when it ends, and is
// shown by readiness and status for as long as it lasts.
//
// A [Monitor] watches one thing that an agent cannot do without, and finds out by
// itself when it works again.
package health
