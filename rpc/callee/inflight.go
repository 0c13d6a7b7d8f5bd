package callee

import "github.com/agentd/agentd/rpc"

// register counts the call among those that run, unless there is no room for it.
func (c *call) register() *rpc.Error {
	in := c.inbox
	in.mu.Lock()
	defer in.mu.Unlock()
	switch most := in.limits.Load().MaxInFlight; {
	case in.closed:
		return rpc.NewError(rpc.CodeBusy, nil, "%s is shutting down", in.cfg.Self)
	case len(in.running) >= most:
		return rpc.NewError(rpc.CodeBusy, nil, "%s runs %d requests already", in.cfg.Self, most)
	case in.running[c.request.MessageID] != nil:
		return rpc.NewError(rpc.CodeInvalidRequest, nil, "a request with this messageId is running already")
	}
	in.running[c.request.MessageID] = c
	// Under the same lock as closed: Shutdown sets closed before it waits.
	in.serving.Add(1)
	return nil
}

// unregister frees the room of the call. in.serving counts it until it has been
// answered too.
func (in *Inbox) unregister(c *call) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.running, c.request.MessageID)
}

// isRunning reports whether a request is being served.
func (in *Inbox) isRunning(messageID string) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.running[messageID] != nil
}

// InFlight is the number of requests that run.
func (in *Inbox) InFlight() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.running)
}
