package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/strictyaml"
	"github.com/agentd/agentd/skill"
	"github.com/agentd/agentd/skill/sandbox"
)

// A place is where files of the agent's skills are.
type place struct {
	base    string // holds calls, and the programs that agentd has built
	calls   string // holds the temporary folders of all calls of agents of this user
	folders *sandbox.Folders
	builds  *skill.Builds
}

// placeOf returns the place for skills that run as a user; nil is agentd's own.
func (c *confinement) placeOf(user *sandbox.User) *place {
	if user != nil {
		return c.others
	}
	return c.own
}

// places are those that there are.
func (c *confinement) places() []*place {
	if c.others == nil {
		return []*place{c.own}
	}
	return []*place{c.own, c.others}
}

// Close stops the removal of temporary folders.
func (c *confinement) Close() {
	for _, p := range c.places() {
		p.folders.Close()
	}
}

// The names of places.
const (
	ownPlace    = "skills"
	othersPlace = "others-skills"
)

// openOthers opens the place for skills that run as other users, if there is to be one. Its
// folders can be entered by everybody: those of agentd's own user's skills stay closed.
func (d *Daemon) openOthers(c *confinement, switches bool) (*confinement, error) {
	if c == nil || c.others != nil || !switches && !exists(filepath.Join(placeName(othersPlace), "calls", d.agentFolder())) {
		return c, nil // and nothing is left of an earlier run that was killed
	}
	both := *c // others may read c
	var err error
	if both.others, err = d.openPlace(othersPlace, sandbox.EnterableFolder, sandbox.OpenOthersFolders); err != nil {
		return nil, err
	}
	d.confinement.Store(&both)
	return &both, nil
}

// openPlace makes a place, whose folders own makes.
func (d *Daemon) openPlace(name string, own func(string) error, open func(string) (*sandbox.Folders, error)) (*place, error) {
	base, err := d.temporaryBase(name, own)
	if err != nil {
		return nil, err
	}
	p := &place{base: base, calls: filepath.Join(base, "calls")}
	builds := filepath.Join(base, "builds")
	for _, folder := range []string{p.calls, builds} {
		if err := own(folder); err != nil {
			return nil, err
		}
	}
	if p.folders, err = open(filepath.Join(p.calls, d.agentFolder())); err != nil {
		return nil, err
	}
	p.builds = skill.NewBuilds(filepath.Join(builds, d.agentFolder()))
	return p, nil
}

// agentFolder names the folder of this agent in a place. One run of an agent has its audit
// log, and so this folder, for itself.
func (d *Daemon) agentFolder() string {
	id := sha256.Sum256([]byte(d.cfg.Paths.State + "\x00" + d.Member().ID + d.apart))
	return hex.EncodeToString(id[:8])
}

// placeName returns where a place is, unless another user has taken the name.
func placeName(name string) string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("agentd-%d-%s", os.Geteuid(), name))
}

// temporaryBase returns the folder for temporary files of this user's agents, without
// symbolic links.
func (d *Daemon) temporaryBase(name string, own func(string) error) (string, error) {
	base := placeName(name)
	if err := own(base); err != nil {
		// Another user may have taken the name; that must not stop the agent.
		d.log.Warn("temporary folders of calls are elsewhere", "error", err)
		if base, err = os.MkdirTemp("", "agentd-"+name+"-*"); err != nil {
			return "", fmt.Errorf("no folder for the temporary files of calls: name one that this user may write in TMPDIR: %w", err)
		}
		if err := own(base); err != nil {
			return "", err
		}
	}
	return sandbox.Real(base), nil
}

// userOf returns the user that a skill's program runs as, or nil for agentd's own. The error
// says where the file names one that it cannot run as.
func (d *Daemon) userOf(ctx context.Context, c *confinement, s fleet.Skill) (*sandbox.User, error) {
	if s.Sandbox == nil || s.Sandbox.User == nil {
		return nil, nil
	}
	named := s.Sandbox.User
	if c == nil {
		return nil, &strictyaml.Error{Faults: []strictyaml.Fault{named.Position.Fault(
			fmt.Sprintf("the skill %q cannot run as the user %s: its agent is not run by a program that confines skills on Linux", s.Name, named.Name),
			"run it with agentd, on Linux, or leave the key out")}}
	}
	user, err := sandbox.FindUser(named.Name)
	if err == nil {
		err = user.MaySwitch(ctx, c.others.calls)
	}
	if fault := (*sandbox.UserError)(nil); errors.As(err, &fault) {
		return nil, &strictyaml.Error{Faults: []strictyaml.Fault{named.Position.Fault(
			fmt.Sprintf("the skill %q: %s", s.Name, fault.Cause), fault.Remedy)}}
	}
	return user, err
}
