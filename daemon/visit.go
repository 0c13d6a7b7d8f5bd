package daemon

import (
	"context"
	"errors"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/transport/nats"
)

// A Visit is a pair of connections to a fleet's NATS system, made as a member makes its own
// and with its credentials, by somebody who wants to know what the member can do there.
type Visit struct {
	// Calls is the connection for calls.
	Calls *nats.Conn
	// JetStream is that for JetStream, which may be the same.
	JetStream *nats.Conn
}

// VisitNATS connects to the NATS system of a member, with the credentials that the member
// would use. Servers in opts take precedence over those of its files. ok is false for a member
// that does not use NATS. The caller closes the visit, unless there is an error.
func VisitNATS(ctx context.Context, paths Paths, m *fleet.Member, opts nats.Options) (v *Visit, ok bool, err error) {
	specs := natsSpecs(m)
	if len(specs) == 0 {
		return nil, false, nil
	}
	opts = opts.WithServers(specs[0].Servers)
	opts.Name = "agentd/" + m.ID + "/doctor"
	calls, opts, err := connectNATS(ctx, paths, m.ID, opts)
	if err != nil {
		return nil, true, err
	}
	v = &Visit{Calls: calls, JetStream: calls}
	js, err := connectJetStream(ctx, opts)
	if err != nil {
		return nil, true, errors.Join(err, calls.Close())
	}
	if js != nil {
		v.JetStream = js
	}
	return v, true, nil
}

// Close ends the connections.
func (v *Visit) Close() error {
	err := v.Calls.Close()
	if v.JetStream != v.Calls {
		err = errors.Join(err, v.JetStream.Close())
	}
	return err
}
