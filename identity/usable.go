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
		case len(keys.out) == 0:
			e.Reason = UnknownKey
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

// Preferred orders own keys so that those which others know some public keys of come
// last, and sign: others reject whatever the rest of them signs. Otherwise the order stays.
func Preferred(own []OwnKey, known []PublicKey) []OwnKey {
	isKnown := func(k OwnKey) bool {
		return slices.ContainsFunc(known, func(p PublicKey) bool { return p.Key == k.Public })
	}
	preferred := make([]OwnKey, 0, len(own))
	for _, last := range [...]bool{false, true} {
		for _, k := range own {
			if isKnown(k) == last {
				preferred = append(preferred, k)
			}
		}
	}
	return preferred
}

// Lacking returns the public key for which others sign their messages to an agent at a
// moment, if the agent cannot use it then: it rejects those messages. Others sign for the
// last one that is valid.
func Lacking(own []OwnKey, known []PublicKey, at time.Time) (lacks PublicKey, is bool) {
	for _, k := range slices.Backward(known) {
		if k.Window.covers(at) != 0 {
			continue
		}
		holds := slices.ContainsFunc(own, func(o OwnKey) bool { return o.Public == k.Key && o.Window.covers(at) == 0 })
		return k, !holds
	}
	return PublicKey{}, false
}
