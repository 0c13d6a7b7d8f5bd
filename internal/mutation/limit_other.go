//go:build !unix

package main

// limitMemory does nothing: this system has no bound that children inherit.
func limitMemory() {}
