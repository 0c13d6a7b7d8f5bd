// Package identity implements `agentd identity`: it lists the key pairs of the
// agents on this machine, publishes their public halves in identities.yaml, and
// rotates them.
//
// The key store itself is the package of the same name at the top of the module,
// which this one imports.
package identity
