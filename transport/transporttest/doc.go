// Package transporttest is the conformance suite for implementations of package
// transport. A test of the implementation calls [Run] with a function that opens a
// fresh broker. The suite tests what all transports have in common; what is
// particular to one, such as reconnecting, is tested in its own package.
package transporttest
