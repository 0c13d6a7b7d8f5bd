package daemon

import (
	"context"

	"github.com/agentd/agentd/internal/descendants"
	"github.com/agentd/agentd/skill/sandbox"
)

// ownProcess makes the process what [Config.OwnsProcess] says, and begins the account of
// the processes that it starts for calls. What this system or a container's rules do not
// allow is said, and does not keep the agent from starting.
func (c *Config) ownProcess() {
	if c.family != nil {
		return
	}
	c.starts = sandbox.NewStarts()
	var err error
	c.family, err = descendants.NewFamily(c.OwnsProcess)
	if err != nil {
		c.Logger.Warn("processes that skills leave running are not found, and could pass for an operator's", "error", err)
	}
}

// openDescendants ends what skills of the agent's last run have left, if that has
// crashed. No other process runs the agent: it would have the audit log. The folder is
// that of the control socket, which admits nobody else.
func (d *Daemon) openDescendants(context.Context) error {
	if d.Member().ClientOnly() && !usesServers(d.Member()) {
		return nil
	}
	ended, err := d.descendants.Succeed(d.cfg.Paths.marks(d.Member().ID))
	if ended > 0 {
		d.log.Warn("ended processes of skills that the last run of the agent has left", "ended", ended)
	}
	return err
}

// closeDescendants ends what is left of the agent's calls, all of which have ended.
func (d *Daemon) closeDescendants() error {
	ended, err := d.descendants.Close()
	if ended > 0 {
		d.log.Warn("ended processes that skills have left", "ended", ended)
	}
	return err
}
