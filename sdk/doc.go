// Package sdk holds the kits for skills and clients in other languages than Go, and makes what
// their package managers install: the agentd binary carries them, so that a fleet gets them
// without a network.
//
// The kit for Go is package skill/sdk.
package sdk
