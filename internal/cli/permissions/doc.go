// Package permissions implements `agentd permissions`: it explains which rule
// decides whether one agent may call another.
package permissions
