// Package sealed encrypts the keys of an agent for their way to another replica.
//
// The format is that of age (age-encryption.org/v1), in its armor: to recipients of age,
// to SSH keys, or to a passphrase. Inside is JSON that names the agent and has all of its
// keys, as in its file of keys.
//
// A sealed file does not prove who sealed it: whoever knows the recipient can. Its content
// proves itself, if the public halves are compared with those that the fleet publishes,
// because only who has the published key can put it there.
package sealed
