package daemon

import (
	"context"
	"os"

	"github.com/agentd/agentd/daemon/skillapi"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill"
)

// openSkillAPI opens the API for skills that are processes, for an agent that has one: at
// its start, or at the reload that brings the first. It stays open until Stop.
func (d *Daemon) openSkillAPI(ctx context.Context) (*skillapi.Server, error) {
	if api := d.skillAPI.Load(); api != nil {
		return api, nil
	}
	api, err := skillapi.Listen(ctx, skillapi.Config{
		Caller: d.client, Results: d, Tools: toolsHandler(), MaxPayloadBytes: func() int { return d.Member().Agent.Limits.MaxPayloadBytes }, ModelUsage: d.modelUsed, Logger: d.log,
	})
	if err != nil {
		return nil, err
	}
	d.skillAPI.Store(api)
	return api, nil
}

// serveUsers has the API for skills accept the users that handlers run as, and no others.
func (d *Daemon) serveUsers(handlers map[string]rpc.Handler) {
	api := d.skillAPI.Load()
	if api == nil {
		return
	}
	var users []int
	for _, h := range handlers {
		if s, ok := h.(toolSkill); ok {
			h = s.skill
		}
		p, _ := h.(*skill.Process)
		if w, ok := h.(*workerSkill); ok {
			p = w.process
		}
		switch {
		case p == nil:
		case p.Sandbox != nil && p.Sandbox.Policy.User != nil:
			users = append(users, p.Sandbox.Policy.User.UID)
		default:
			users = append(users, os.Geteuid())
		}
	}
	api.SetUsers(users...)
}
