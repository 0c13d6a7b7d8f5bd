package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon/control"
)

// WithAuditKeeper calls use with a handle that may change the audit log at path,
// which must exist: the log itself if no process has it open, or else the agent that
// has, through its control socket. An empty socket means that the agent is not known.
//
// Opening the log comes first because it takes the lock: to look for a running agent
// first would leave a moment in which one could start.
//
// The error is that of use, or an [*auditchain.Error]; it has
// [auditchain.CodeLocked] if the log has an owner that cannot be reached.
func WithAuditKeeper(ctx context.Context, path, socket string, use func(control.AuditKeeper) error) (err error) {
	log, locked := auditchain.Open(ctx, path, auditchain.Options{})
	if locked == nil {
		defer func() { err = errors.Join(err, log.Close()) }()
		return use(log)
	}
	if auditchain.CodeOf(locked) != auditchain.CodeLocked || socket == "" {
		return locked
	}
	client := control.NewClient(socket)
	defer client.Close()
	err = use(client)
	if _, gone := errors.AsType[*control.NotRunningError](err); gone {
		return fmt.Errorf("%w; no agent answers on its control socket %s either", locked, socket)
	}
	return err
}
