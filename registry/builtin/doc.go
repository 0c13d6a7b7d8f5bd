// Package builtin lists the capabilities that agentd ships.
package builtin
