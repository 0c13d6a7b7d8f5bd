// Package registry is the commands `agentd registry`: what agents may use.
package registry
