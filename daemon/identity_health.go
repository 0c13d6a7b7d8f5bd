package daemon

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/identity"
)

// identityInterval is how often the keys in force are checked: they begin and end to
// be valid without any file changing.
const identityInterval = time.Second

// judgeIdentity shows what is wrong with the keys in force, and takes back what no
// longer is. This replica takes requests only while it has the keys for it. The caller
// holds d.reloading.
func (d *Daemon) judgeIdentity() {
	keys := d.keyring.current.Load()
	now := map[string]bool{}
	show := func(c health.Condition) {
		c.Kind = health.Identity
		now[c.Subject] = true
		d.conditions.Begin(c)
	}
	c, wrong, others := d.judgeOwnKeys(keys)
	if wrong {
		show(c)
	}
	if d.unread != nil {
		show(*d.unread)
	}
	for _, e := range keys.Unusable() {
		if others && e.Provider == identity.NKey {
			continue // the same once more, for each peer
		}
		show(health.Condition{
			Subject: string(e.Peer), Code: e.Reason.String(), Advisory: true, Cause: e.Error(),
			Effect: fmt.Sprintf("this agent cannot prove itself to %s: calls between the two fail", e.Peer),
			Remedy: "publish a key that is valid now (docs/identity.md)",
		})
	}
	d.takeRequests(!others)
	for _, c := range d.conditions.Active() {
		if c.Kind == health.Identity && !now[c.Subject] {
			d.conditions.End(health.Identity, c.Subject)
		}
	}
}

// judgeOwnKeys finds out whether others accept what this agent signs, and whether it can
// check what they sign for it. others is true where it cannot and another replica may, so
// that this one must leave the requests to those.
func (d *Daemon) judgeOwnKeys(keys *memberKeys) (c health.Condition, wrong, others bool) {
	if !keys.paired {
		return c, false, false // nobody verifies them
	}
	if keys.published == nil {
		return health.Condition{
			Code: "unpublished", Advisory: true, Effect: "other agents do not know this one's key",
			Cause: "identities.yaml has no key of " + string(d.Member().Address), Remedy: "publish it (agentd identity publish), and let the other agents reload",
		}, true, false
	}
	now := time.Now()
	reason := identity.Published(keys.own, keys.published, now)
	keys.rejected.Store(reason == identity.UnknownKey)
	lacking := keys.lacks(keys.own, now)
	switch {
	case lacking != nil:
		return d.anothersKey(keys, lacking), true, true
	case reason != 0:
		return health.Condition{
			Code: reason.String(), Effect: "other agents reject every message of this one",
			Cause:  fmt.Sprintf("the key that signs them is not published as valid: %s", reason),
			Remedy: "publish it (agentd identity publish), and let the other agents reload",
		}, true, false
	}
	c, wrong = judgeLater(keys, now)
	return c, wrong, false
}

// anothersKey is the condition of an agent for whom another key is published than it has.
func (d *Daemon) anothersKey(keys *memberKeys, lacking *identity.PublicKey) health.Condition {
	c := health.Condition{
		Code:   identity.UnknownKey.String(),
		Cause:  fmt.Sprintf("the published key of %s is %s, which %s does not have, or not as valid", d.Member().Address, lacking.Key, keys.store.Path),
		Effect: "this replica takes no requests, and other agents reject what it signs",
		Remedy: "bring the key here (agentd identity export on the replica that has it, agentd identity import here); " +
			"if no replica has it, publish this one's (agentd identity publish --replace)",
	}
	if d.Member().ClientOnly() {
		c.Effect = "other agents reject every message of this one"
	}
	if keys.store.Mounted {
		c.Remedy = "mount the file that has it (security.identity.keyFile), or publish the mounted one (agentd identity publish --replace)"
	}
	return c
}

// judgeLater finds what does no harm yet.
func judgeLater(keys *memberKeys, now time.Time) (c health.Condition, wrong bool) {
	c.Advisory = true
	info, err := os.Stat(keys.store.Path)
	const readable = 0o004
	switch {
	case err != nil:
		c.Code, c.Effect, c.Cause = "key-file", "the next start would find no key", err.Error()
		c.Remedy = "put the file back (agentd identity import); or publish a new key (agentd identity publish)"
		return c, true
	case keys.kept:
		c.Code, c.Effect, c.Cause = "key-file", "the next start would find another key", keys.store.Path+" no longer has the published key"
		c.Remedy = "put the key back (agentd identity import); or publish the new one (agentd identity publish --replace)"
		return c, true
	case keys.store.Mounted && info.Mode()&readable != 0 && runtime.GOOS != "windows":
		c.Code, c.Effect = "key-readable", "every user of this machine can act as this agent"
		c.Cause = fmt.Sprintf("%s has the mode %04o", keys.store.Path, info.Mode().Perm())
		c.Remedy = "mount it for the agent's user or group alone (defaultMode: 0440 of a Kubernetes Secret)"
		return c, true
	}
	for _, k := range keys.published {
		if next, lacks := identity.Lacking(keys.own, keys.published, k.Window.NotBefore); lacks && k.Window.NotBefore.After(now) {
			c.Code, c.Cause = "next-key", fmt.Sprintf("the next key, %s, is published, and %s does not have it", next.Key, keys.store.Path)
			c.Effect = "this replica takes no more requests after " + k.Window.NotBefore.Add(-clockTolerance).UTC().Format(time.RFC3339)
			c.Remedy = "bring the key here before (agentd identity export where it was made, agentd identity import here)"
			return c, true
		}
	}
	for _, own := range keys.own {
		known := slices.ContainsFunc(keys.published, func(k identity.PublicKey) bool { return k.Key == own.Public })
		if !known && own.Window.Reason(now) == 0 {
			c.Code, c.Cause = "unpublished", fmt.Sprintf("identities.yaml does not have %s", own.Public)
			c.Effect = "the newest key of this agent signs nothing: other agents do not know it"
			c.Remedy = "publish it (agentd identity publish), and let the other agents reload"
			return c, true
		}
	}
	return c, false
}
