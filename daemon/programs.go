package daemon

import (
	"maps"
	"slices"
	"sync"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/skill"
)

// programs keep what the programs of skills use, over reloads. The zero value is ready.
type programs struct {
	mu     sync.Mutex
	usages map[string]*skill.Usage // by skill; guarded by mu
}

// of returns what notes the use of a skill.
func (p *programs) of(name string) *skill.Usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.usages == nil {
		p.usages = map[string]*skill.Usage{}
	}
	u := p.usages[name]
	if u == nil {
		u = &skill.Usage{}
		p.usages[name] = u
	}
	return u
}

// keep forgets the skills of which no program runs and that are not in the files any more.
func (p *programs) keep(known func(name string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.usages, func(name string, u *skill.Usage) bool { return !known(name) && u.Running() == 0 })
}

// status lists them by name.
func (p *programs) status() (all []control.Processes) {
	p.mu.Lock()
	usages := maps.Clone(p.usages)
	p.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(usages)) {
		used := usages[name].Read()
		all = append(all, control.Processes{
			Skill: name, Starts: used.Starts, Running: used.Running, CPUSeconds: used.CPU.Seconds(), ResidentBytes: used.ResidentBytes,
		})
	}
	return all
}
