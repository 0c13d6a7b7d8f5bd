// Package dev implements `agentd dev`: it runs a fleet in this process for the person who
// writes its agents. Each call is a line, violations are shown in full, and what is changed,
// contracts and the programs of skills, is loaded at once.
package dev
