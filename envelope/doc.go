// Package envelope is the wire message of agentd, version 1: its fields, its
// strict decoder, its encoder and the forms that are signed.
package envelope
