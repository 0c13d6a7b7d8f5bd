// Package rpctest is the harness of the tests of package rpc and of its two ends.
//
// A [World] is one caller and one callee on a memory bus of their own. Nothing of
// ours is replaced: the transport, the capability documents, the keyrings and the
// limits are the real ones, and the records go to slices instead of a disk.
//
// To test one end, the other is played by hand. A [ForeignCaller] publishes
// envelopes that no [caller.Client] would, and [World.TakeOver] answers requests in
// place of a [callee.Inbox]. A [Queue] stands for the broker of durable calls.
//
// Every function that takes a [testing.TB] ends the test when it fails.
package rpctest
