package daemon

import (
	"context"

	"github.com/agentd/agentd/daemon/skillapi"
)

// openSkillAPI opens the API for skills that are processes, for an agent that has one: at
// its start, or at the reload that brings the first. It stays open until Stop.
func (d *Daemon) openSkillAPI(ctx context.Context) (*skillapi.Server, error) {
	if api := d.skillAPI.Load(); api != nil {
		return api, nil
	}
	api, err := skillapi.Listen(ctx, skillapi.Config{
		Caller: d.client, Results: d, MaxPayloadBytes: func() int { return d.Member().Agent.Limits.MaxPayloadBytes }, Logger: d.log,
	})
	if err != nil {
		return nil, err
	}
	d.skillAPI.Store(api)
	return api, nil
}
