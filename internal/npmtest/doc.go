// Package npmtest runs programs that npm has installed, for tests: the conformance suite of the
// Model Context Protocol, its Inspector, servers that others wrote.
package npmtest
