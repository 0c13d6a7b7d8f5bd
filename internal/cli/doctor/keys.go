package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/internal/secretref"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// keys examines the files that hold the agent's secrets, and whether the fleet publishes the
// key that it signs with.
func (p *patient) keys(context.Context) {
	store := daemon.IdentityStore(p.member, p.paths)
	sound := p.secretFiles(store)
	p.tokens()
	if sound > 0 {
		p.say(checkKeys, ok, "", "%s, for their owner alone", count(sound, "file"))
	}
	p.identity(store)
}

// secretFiles judges the modes of the files that are there, and returns how many are in order.
func (p *patient) secretFiles(store identity.Store) (sound int) {
	state := filepath.Join(p.paths.State, "nats")
	options := nats.FromEnv(p.env.Getenv)
	files := []string{
		store.Path, options.CredsFile, options.NKeySeedFile, options.KeyFile,
		natsauth.CredsFile(state, p.member.ID), natsauth.KeyFile(state, p.member.ID), natsauth.KeyFile(state, natsauth.QueueKey(p.member.ID)),
	}
	slices.Sort(files)
	for _, path := range slices.Compact(files) {
		if path == "" {
			continue
		}
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			p.say(checkKeys, fail, "let the agent's user read it", "%v", err)
		case runtime.GOOS == "windows": // modes say nothing there
		case info.Mode().Perm()&0o007 != 0:
			p.say(checkKeys, fail, "chmod o= "+path, "%s has the mode %04o: every user of this host can act as this agent", path, info.Mode().Perm())
		case info.Mode().Perm()&0o070 != 0 && !store.Mounted:
			p.say(checkKeys, warn, "chmod go= "+path, "%s has the mode %04o: its group can act as this agent", path, info.Mode().Perm())
		default:
			sound++
		}
	}
	return sound
}

// tokens resolves the secrets that the agent's file refers to for its clients: one that is not
// there keeps the agent from starting. A running agent has another environment than this
// command, so that only files count for it.
func (p *patient) tokens() {
	resolve := func(client, ref string) {
		if ref == "" || p.agent != nil && len(secretref.Files(ref)) == 0 {
			return
		}
		if _, err := secretref.Resolve(ref, p.env.Getenv); err != nil {
			p.say(checkKeys, fail, "put the secret there; for a variable, run this with the agent's own environment", "the token of the client %s: %v", client, err)
		}
	}
	for _, c := range p.member.Agent.MCP.Clients {
		resolve(c.Name, c.Token)
	}
	for _, c := range p.member.Agent.Control.Clients {
		resolve(c.Name, c.Token)
	}
}

// identity says whether others accept what the agent signs.
func (p *patient) identity(store identity.Store) {
	published := p.fleet.Identity(p.member, p.member.Address)
	if len(p.fleet.Identities) == 0 {
		p.say(checkIdentity, skipped, "publish keys: agentd identity publish (docs/identity.md)", "no agent of the fleet proves who it is: whoever reaches the broker can act as any of them")
		return
	}
	if published == nil {
		p.say(checkIdentity, warn, "agentd identity publish --agent "+p.member.ID, "identities.yaml has no key of this agent: to others it is anybody")
		return
	}
	known := daemon.PublishedKeys(published)
	if len(known) == 0 {
		p.say(checkIdentity, ok, "", "proves itself with shared secrets")
		return
	}
	own, err := store.Keys()
	if err != nil {
		p.say(checkIdentity, fail, "bring the key here (agentd identity export where it is, agentd identity import here), or publish another one", "the agent's own key: %v", err)
		return
	}
	if lacking, is := identity.Lacking(own, known, time.Now()); is {
		p.say(checkIdentity, fail, "bring the key here (agentd identity export where it is, agentd identity import here)", "the published key is %s, which %s does not have", lacking.Key, store.Path)
		return
	}
	if reason := identity.Published(own, known, time.Now()); reason != 0 {
		p.say(checkIdentity, fail, "publish it (agentd identity publish), and let the other agents reload", "others refuse what the agent signs: %s", reason)
		return
	}
	p.say(checkIdentity, ok, "", "its key is published and valid")
}
