// Package capabilitylist reads the object that lists what an agent may use, for the
// package that reads an agent's file and for the one that resolves it.
package capabilitylist
