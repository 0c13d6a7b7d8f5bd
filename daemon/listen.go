package daemon

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/transport"
)

// A listening is whether the agent takes requests now.
type listening struct {
	mu    sync.Mutex
	begun bool // from the last steps of start to the beginning of Stop; guarded by mu
	open  bool // guarded by mu
}

// stepBackTimeout bounds how long the requests that have arrived take to be accepted.
const stepBackTimeout = 5 * time.Second

// listen takes requests, unless the agent lacks the keys for it.
func (d *Daemon) listen(ctx context.Context) error {
	if d.inbox == nil {
		return nil
	}
	if err := d.findMailbox(ctx); err != nil {
		return err
	}
	l := &d.listening
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = true
	if _, _, others := d.judgeOwnKeys(d.keyring.current.Load()); others {
		return nil
	}
	if err := d.openListeners(); err != nil {
		return err
	}
	l.open = true
	return nil
}

// takeRequests begins or ends to take requests, if that is a change. The other replicas
// take them meanwhile. What cannot begin now is tried again with the next look at the
// keys.
func (d *Daemon) takeRequests(take bool) {
	l := &d.listening
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.begun || l.open == take {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stepBackTimeout)
	defer cancel()
	var err error
	if take {
		err = d.openListeners()
	}
	if !take || err != nil { // some may be open
		l.open = false
		if stopped := d.inbox.StopListening(ctx); stopped != nil {
			d.log.Warn("requests that had arrived may not be served", "error", stopped)
		}
	}
	if err != nil {
		d.conditions.Begin(health.Condition{
			Kind: health.Listening, Code: "failed", Cause: err.Error(),
			Effect: "this replica takes no requests", Remedy: "it tries again by itself",
		})
		return
	}
	d.conditions.End(health.Listening, "")
	l.open = take
}

// stop ends what takeRequests does: the inbox is about to shut down.
func (l *listening) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = false
}

// openListeners accepts requests by every declared transport that this process supports.
// A transport that it does not support is no error as long as one remains: the same
// files serve a fleet in one process and one that is spread over hosts.
func (d *Daemon) openListeners() error {
	specs, transports, err := d.supported()
	if err != nil {
		return err
	}
	for i, spec := range specs {
		if err := d.inbox.Listen(transports[i], spec.Requests); err != nil {
			return err
		}
	}
	if d.mailbox != nil {
		return d.inbox.ListenDurable(d.nats(), d.mailbox, d.mailboxSubject)
	}
	return nil
}

// supported returns the agent's transports that this process supports. None is an error.
func (d *Daemon) supported() (specs []capability.TransportSpec, transports []transport.Transport, err error) {
	var kinds []capability.TransportKind
	for _, spec := range d.Member().Capabilities.Transports {
		kinds = append(kinds, spec.Kind)
		t := d.transport(spec.Kind)
		if t == nil {
			d.log.Debug("transport not used in this process", "kind", spec.Kind)
			continue
		}
		specs, transports = append(specs, spec), append(transports, t)
	}
	if specs == nil {
		return nil, nil, fmt.Errorf("this process supports none of the agent's transports %v, so nobody could call it", kinds)
	}
	return specs, transports, nil
}

// findMailbox opens the queue of requests that the broker keeps for this agent, if one of
// its capabilities is durable. One mailbox serves the agent, however many NATS transports
// it declares.
func (d *Daemon) findMailbox(ctx context.Context) error {
	specs, _, err := d.supported()
	if err != nil {
		return err
	}
	for _, spec := range specs {
		if spec.Kind == capability.NATS {
			return d.openDurable(ctx, spec.Requests)
		}
	}
	return nil
}
