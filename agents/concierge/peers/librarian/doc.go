// Package librarian is the generated client of agent://librarian.
package librarian

//go:generate go run ../../../../cmd/agentd capabilities gen --peer librarian --lang go --out ..
