package daemon_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/rpc"
)

// writeKeys puts a key of each agent into identities.yaml, valid as the windows say.
func writeKeys(t *testing.T, cfg daemon.Config, windows map[string]identity.Window) {
	t.Helper()
	var all []fleet.Identity
	for _, id := range []string{"callee", "caller"} {
		w, known := windows[id]
		if !known {
			continue
		}
		keys, err := identity.Store{Path: cfg.Paths.Identity(id)}.Ensure(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fleet.Identity{Agent: envelope.AddressOf(id), Auth: &fleet.PeerAuth{
			Provider: fleet.NKey, PublicKeys: []fleet.PublicKey{{Key: keys[0].Public, NotBefore: w.NotBefore, NotAfter: w.NotAfter}},
		}})
	}
	if err := fleet.WriteIdentities(cfg.Fleet.Root, all); err != nil {
		t.Fatal(err)
	}
}

// identityTrouble is the condition of an agent's status about keys, if there is one.
func identityTrouble(s control.Status) (c health.Condition, found bool) {
	for _, c := range s.Conditions {
		if c.Kind == health.Identity {
			return c, true
		}
	}
	return c, false
}

// A key that is published wrongly, or out of its time, is reported when it comes into
// force, and no longer when the files or the time have mended it.
func TestIdentityTrouble(t *testing.T) {
	t.Parallel()
	cfg, logged := logTo(withGo(load(t, files())))
	valid, expired := identity.Window{}, identity.Window{NotAfter: time.Now().Add(-time.Hour)}
	writeKeys(t, cfg, map[string]identity.Window{"callee": valid, "caller": valid})
	f := startFleet(t, cfg)
	defer stop(t, f)
	caller, _ := f.Daemon("caller")
	for _, d := range f.Daemons { // they were loaded before there were keys
		if err := d.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		windows map[string]identity.Window
		code    string
		subject string
		ready   bool
		call    rpc.Code // 0 for one that is not made
	}{
		"the own key, expired":   {map[string]identity.Window{"callee": valid, "caller": expired}, "expired", "", false, 0},
		"the own key, not there": {map[string]identity.Window{"callee": valid}, "unpublished", "", true, 0},
		"a peer's key, expired":  {map[string]identity.Window{"callee": expired, "caller": valid}, "expired", "agent://callee", true, rpc.CodeAuthFailed},
	} {
		writeKeys(t, cfg, test.windows)
		if err := caller.Reload(); err != nil {
			t.Fatal(err)
		}
		status := caller.Status()
		c, _ := identityTrouble(status)
		if c.Code != test.code || c.Subject != test.subject || status.Ready != test.ready || c.Remedy == "" {
			t.Errorf("%s: %+v", name, status)
		}
		if test.call != 0 {
			if r, err := goCall(t, f); rpc.CodeOf(err) != test.call || !strings.Contains(r.Error.Message, test.code) || !r.Error.Retryable {
				t.Errorf("%s: %+v", name, r.Error)
			}
		}
		writeKeys(t, cfg, map[string]identity.Window{"callee": valid, "caller": valid})
		if err := caller.Reload(); err != nil {
			t.Fatal(err)
		}
		if c, still := identityTrouble(caller.Status()); still || !caller.Status().Ready {
			t.Errorf("%s, and mended: %+v", name, c)
		}
		if _, err := goCall(t, f); err != nil {
			t.Errorf("%s, and mended: %v", name, err)
		}
	}
	if text := logged(); strings.Count(text, "level=ERROR") != 3 || strings.Count(text, `msg="over: `) != 3 {
		t.Errorf("logged %s", text)
	}
}

// What begins or ends by the clock takes no reload; and a key file that is gone is reported
// before a restart replaces it.
func TestIdentityTroubleByItself(t *testing.T) {
	t.Parallel()
	cfg := withGo(load(t, files()))
	soon := identity.Window{NotBefore: time.Now().Add(time.Second)}
	writeKeys(t, cfg, map[string]identity.Window{"callee": soon, "caller": {}})
	f := startFleet(t, cfg)
	defer stop(t, f)
	caller, _ := f.Daemon("caller")
	for _, d := range f.Daemons { // they were loaded before there were keys
		if err := d.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	eventually.Holds(t, "the peer's key is valid", func() bool {
		_, trouble := identityTrouble(caller.Status())
		return time.Now().After(soon.NotBefore) && !trouble
	})
	path := cfg.Paths.Identity("caller")
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the key file is missed", func() bool {
		c, _ := identityTrouble(caller.Status())
		return c.Code == "key-file" && caller.Status().Ready
	})
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the key file is back", func() bool { _, trouble := identityTrouble(caller.Status()); return !trouble })
}
