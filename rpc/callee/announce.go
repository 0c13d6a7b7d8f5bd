package callee

import (
	"encoding/json"

	"github.com/agentd/agentd/rpc/internal/wire"
	"github.com/agentd/agentd/transport"
)

// announce notifies callers of what the agent serves from now on, so that those that refuse
// to call it look again, and the others look before they send a payload. Nobody may be
// listening: what a caller misses it finds out by asking.
func (in *Inbox) announce(s *subscriptions) {
	notice, err := json.Marshal(wire.Notice{Agent: in.cfg.Self, Revision: in.served.Load().revision})
	if err == nil {
		err = s.transport.Publish(in.answering, transport.Message{Topic: wire.ChangedTopic(s.topic), Data: notice})
	}
	if err != nil {
		in.cfg.Logger.Warn("callers are not told what this agent serves now; they find out when they call", "error", err)
	}
}

// announceAgain announces what the agent serves on a transport whenever that has its
// connection back. What callers published meanwhile, such as the cancellation of a call that
// waits in a queue, has not come here: they send it again when they hear this. again is
// closed with the first connection that t, which is r, makes anew. It returns when the inbox
// ends.
func (in *Inbox) announceAgain(r transport.Reconnecter, t transport.Transport, again <-chan struct{}) {
	for {
		select {
		case <-again:
		case <-in.root.Done():
			return
		}
		again = r.NextReconnect() // first: what is lost while it announces comes back later
		in.mu.Lock()
		all := in.subscriptions
		in.mu.Unlock()
		for i := range all {
			if all[i].transport == t {
				in.announce(&all[i])
			}
		}
	}
}

// announceAll is announce for every topic that the agent listens to.
func (in *Inbox) announceAll() {
	in.mu.Lock()
	all := in.subscriptions
	in.mu.Unlock()
	for i := range all {
		in.announce(&all[i])
	}
}
