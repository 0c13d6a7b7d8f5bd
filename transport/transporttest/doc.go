// Package transporttest is the conformance suite of the contract in package
// transport: whoever writes a transport runs it from a test of their own.
package transporttest
