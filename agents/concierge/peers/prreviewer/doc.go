// Package prreviewer is the generated client of agent://pr-reviewer.
package prreviewer

//go:generate go run ../../../../cmd/agentd capabilities gen --peer pr-reviewer --lang go --out ..
