// Package envelope is the wire message of agentd, version 1: its fields, its
// strict decoder, its encoder and the form that is signed.
//
// The format is that of the reference system, so that its agents and ours can
// call each other over one broker. Where it leaves a choice, this package is the
// stricter of the two: addresses have a closed grammar, payloads are I-JSON
// (RFC 7493), an unknown or repeated key is an error, and every fault of a
// message is reported at once.
//
// A decoded [Envelope] shares the memory of its payload with the bytes that it
// was decoded from, and copies everything else. Encoding writes the payload as
// it stands: the bytes that were validated are the bytes that travel.
//
// All functions are safe for concurrent use; an Envelope is plain data.
package envelope
