package daemon

import (
	"fmt"
	"os"
	"time"

	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/identity"
)

// identityInterval is how often the keys in force are looked at: they begin and end to
// be valid without any file changing.
const identityInterval = time.Second

// judgeIdentity shows what is wrong with the keys in force, and takes back what no
// longer is.
func (d *Daemon) judgeIdentity() {
	keys := d.keyring.current.Load()
	now := map[string]bool{}
	show := func(c health.Condition) {
		c.Kind = health.Identity
		now[c.Subject] = true
		d.conditions.Begin(c)
	}
	if c, wrong := d.judgeOwnKeys(keys); wrong {
		show(c)
	}
	for _, e := range keys.Unusable() {
		show(health.Condition{
			Subject: string(e.Peer), Code: e.Reason.String(), Advisory: true, Cause: e.Error(),
			Effect: fmt.Sprintf("this agent cannot prove itself to %s: calls between the two fail", e.Peer),
			Remedy: "publish a key that is valid now (docs/identity.md)",
		})
	}
	for _, c := range d.conditions.Active() {
		if c.Kind == health.Identity && !now[c.Subject] {
			d.conditions.End(health.Identity, c.Subject)
		}
	}
}

// judgeOwnKeys finds out whether others accept what this agent signs.
func (d *Daemon) judgeOwnKeys(keys *memberKeys) (c health.Condition, wrong bool) {
	if len(keys.own) == 0 {
		return c, false // nobody verifies them
	}
	path := d.cfg.Paths.Identity(d.Member().ID)
	reason := identity.Published(keys.own, keys.published, time.Now())
	_, missing := os.Stat(path)
	switch {
	case keys.published == nil:
		return health.Condition{
			Code: "unpublished", Advisory: true, Effect: "other agents do not know this one's key",
			Cause: "identities.yaml has no key of " + string(d.Member().Address), Remedy: "publish it (agentd identity publish), and let the other agents reload",
		}, true
	case reason != 0:
		return health.Condition{
			Code: reason.String(), Effect: "other agents reject every message of this one",
			Cause:  fmt.Sprintf("the key that signs them is not published as valid: %s", reason),
			Remedy: "publish it (agentd identity publish), and let the other agents reload",
		}, true
	case missing != nil:
		return health.Condition{
			Code: "key-file", Advisory: true, Effect: "the next start would make a key that nobody knows", Cause: missing.Error(),
			Remedy: "put the file back; or publish the new key after the start (agentd identity publish)",
		}, true
	}
	return c, false
}
