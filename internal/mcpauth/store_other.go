//go:build !unix

package mcpauth

import "errors"

// tryLock fails: without a lock two processes would use up each other's tokens.
func tryLock(string) (unlock func(), err error) {
	return nil, errors.New("this system has no flock; run agentd on Linux, macOS or a BSD")
}

func syncFolder(string) error { return nil }
