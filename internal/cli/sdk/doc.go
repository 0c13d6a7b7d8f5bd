// Package sdk implements `agentd sdk`: it writes the kits for other languages than Go, which
// the binary carries, as files that their package managers install.
package sdk
