// Package envelope is the wire message of agentd, version 1: its fields, its
// strict decoder, its encoder and the form that is signed.
//
// The format is that of the reference system, so that its agents and ours can
// call each other over one broker. Where that format leaves a choice, this
// package takes the strict one: addresses have a narrow grammar, payloads are
// I-JSON (RFC 7493), an unknown or repeated key is an error, and all faults of a
// message are reported at once.
//
// The payload of a decoded [Envelope] aliases the bytes it was decoded from;
// everything else is copied. Encoding writes the payload unchanged: the bytes
// that were validated are the bytes that travel.
//
// All functions are safe for concurrent use; an Envelope is plain data.
package envelope
