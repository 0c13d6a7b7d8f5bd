// Package fleetlint finds what cannot work in a fleet whose files are each in order:
// agents that nobody can call, subjects that cannot be subscribed, programs that
// are not there, bounds that contradict each other, and keys without effect.
//
// It stands above package fleet because it asks the packages that act on the
// files, such as policy for permissions, rather than repeat their rules. What it
// says about programs holds for the machine that it runs on.
package fleetlint
