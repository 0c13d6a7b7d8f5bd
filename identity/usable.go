package identity

import (
	"slices"
	"strings"
	"time"
)

// Unusable returns, ordered by peer, to which peers no message can be signed now, and
// why: the newest key is not valid. Where proofs are required, a peer without a key is
// among them if it is known to the keyring.
func (k *Keyring) Unusable() []*Error {
	now := k.now()
	var all []*Error
	for address, keys := range k.peers {
		e := &Error{Peer: address, Provider: keys.provider}
		switch {
		case keys.provider == Internal && k.require:
			e.Reason = UnknownPeer
		case keys.provider == Internal:
			continue
		}
		for _, key := range keys.out {
			e.Reason, e.KeyID = key.window.covers(now), key.id
			if e.Reason == 0 {
				break
			}
		}
		if e.Reason != 0 {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(x, y *Error) int { return strings.Compare(string(x.Peer), string(y.Peer)) })
	return all
}

// Published returns why agents that know an agent by some public keys reject what it
// signs now with its own, or 0. It signs with the newest of its keys that is valid.
func Published(own []OwnKey, known []PublicKey, now time.Time) Reason {
	reason := UnknownKey
	for i := len(own) - 1; i >= 0; i-- {
		if why := own[i].Window.covers(now); why != 0 {
			reason = why
			continue
		}
		at := slices.IndexFunc(known, func(k PublicKey) bool { return k.Key == own[i].Public })
		if at < 0 {
			return UnknownKey
		}
		return known[at].Window.covers(now)
	}
	return reason
}
