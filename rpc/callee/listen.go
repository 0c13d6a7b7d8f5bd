package callee

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/agentd/agentd/rpc/internal/check"
	"github.com/agentd/agentd/rpc/internal/wire"
	"github.com/agentd/agentd/transport"
)

// An OverflowSubscriber is a transport that hands over the messages that find no room
// in the queue of a subscription. Where a transport does not, and does not tell the
// publisher either, a request too many would be dropped in silence.
type OverflowSubscriber interface {
	// SubscribeOverflow is [transport.Transport] Subscribe, but that messages which find
	// no room while they wait for h go to overflow, at the same time as others to h.
	SubscribeOverflow(topic, group string, h, overflow transport.Handler) (transport.Subscription, error)
}

// subscriptions are those of the inbox on one transport.
type subscriptions struct {
	transport transport.Transport
	topic     string                   // of requests
	requests  []transport.Subscription // for requests of every kind
	control   transport.Subscription
}

// Listen takes the requests of topic. Replicas of the agent that listen on the same
// topic share them. It may be called for several transports, and again after
// StopListening.
func (in *Inbox) Listen(t transport.Transport, topic string) error {
	opened := subscriptions{transport: t, topic: topic, control: in.takePaused(t, topic)}
	var err error
	if opened.control == nil {
		opened.control, err = t.Subscribe(wire.ControlTopic(topic), "", in.receiveControl)
	}
	if err != nil {
		return fmt.Errorf("callee: %w", err)
	}
	// The requests topic comes last: an agent that can be called can also be asked
	// for its contract and have calls cancelled.
	topics := map[string]transport.Handler{
		wire.CapabilitiesTopic(topic): func(m transport.Message) { in.receiveCapabilities(t, m) },
	}
	for name, service := range in.cfg.Services {
		topics[wire.ServiceTopic(topic, name)] = func(m transport.Message) { in.receiveService(t, m, name, service) }
	}
	for on, h := range topics { // in any order
		s, err := t.Subscribe(on, in.Group(), h)
		if err != nil {
			return errors.Join(fmt.Errorf("callee: %w", err), opened.close())
		}
		opened.requests = append(opened.requests, s)
	}
	s, err := in.subscribe(t, topic)
	if err != nil {
		return errors.Join(fmt.Errorf("callee: %w", err), opened.close())
	}
	opened.requests = append(opened.requests, s)
	in.keep(&opened)
	// After that, so that a contract that is set meanwhile is announced by one of the two.
	in.announce(&opened)
	return nil
}

// takePaused returns the control subscription that StopListening has left open, or nil.
func (in *Inbox) takePaused(t transport.Transport, topic string) transport.Subscription {
	in.mu.Lock()
	defer in.mu.Unlock()
	at := slices.IndexFunc(in.subscriptions, func(s subscriptions) bool {
		return s.transport == t && s.topic == topic && s.requests == nil
	})
	if at < 0 {
		return nil
	}
	control := in.subscriptions[at].control
	// A copy: announceAll reads the list without the lock.
	in.subscriptions = slices.Concat(in.subscriptions[:at], in.subscriptions[at+1:])
	return control
}

// StopListening takes no more requests, neither of topics nor of queues, until Listen and
// ListenDurable are called again: the agent's other replicas get them. What has arrived is
// served, and can still be cancelled. It returns once no topic hands over another
// request, or when ctx ends; a queue may hand over one more.
func (in *Inbox) StopListening(ctx context.Context) error {
	in.mu.Lock()
	var draining []transport.Subscription
	paused := slices.Clone(in.subscriptions) // announceAll reads the list without the lock
	for i := range paused {
		draining = append(draining, paused[i].requests...)
		paused[i].requests = nil
	}
	receivers := in.receivers
	in.subscriptions, in.receivers = paused, nil
	in.mu.Unlock()
	for _, r := range receivers {
		// It returns when the last delivery has ended, which may take hours.
		in.checking.Go(func() { _ = r.Stop(in.root) })
	}
	var errs []error
	for _, s := range draining {
		errs = append(errs, s.Drain(ctx))
	}
	return errors.Join(errs...)
}

// keep adds subscriptions to those that end with the inbox, and checks on the callers of
// their transport.
func (in *Inbox) keep(opened *subscriptions) {
	t := opened.transport
	in.mu.Lock()
	defer in.mu.Unlock()
	known := slices.Contains(in.checked, t)
	in.subscriptions = append(in.subscriptions, *opened)
	// One of each for a transport, however many topics the inbox takes from it. They end
	// with in.root.
	if known {
		return
	}
	in.checked = append(in.checked, t)
	if w, ok := t.(ReplyWatcher); ok {
		in.checking.Go(func() { in.checkCallers(w, t) })
	}
	if r, ok := t.(transport.Reconnecter); ok {
		again := r.NextReconnect()
		in.checking.Go(func() { in.announceAgain(r, t, again) })
	}
}

// subscribe takes the requests of a topic, and refuses those too many if t shows them.
func (in *Inbox) subscribe(t transport.Transport, topic string) (transport.Subscription, error) {
	receive := func(m transport.Message) { in.receive(t, m) }
	if o, ok := t.(OverflowSubscriber); ok {
		return o.SubscribeOverflow(topic, in.Group(), receive, func(m transport.Message) { in.receiveOverflow(t, m) })
	}
	return t.Subscribe(topic, in.Group(), receive)
}

// receiveOverflow refuses a request that receive has no time for. It must prove its
// sender like every other one: an answer to whatever topic a stranger names would make
// this agent its mouthpiece.
func (in *Inbox) receiveOverflow(t transport.Transport, m transport.Message) {
	c := in.decode(t, m)
	if c == nil || !c.verify() || !c.findReplyTopic(m) {
		return
	}
	c.finish(nil, check.Busy(check.OverflowDelay, nil, "%s has more requests waiting than it can look at", in.cfg.Self))
}

// Dropped is the number of messages that the transports of the inbox have dropped
// because they came faster than they could be taken or refused.
func (in *Inbox) Dropped() (n uint64) {
	in.mu.Lock()
	subscribed := slices.Clone(in.subscriptions)
	in.mu.Unlock()
	for _, s := range subscribed {
		for _, r := range append(slices.Clone(s.requests), s.control) {
			n += r.Dropped()
		}
	}
	return n
}

func (s *subscriptions) close() error {
	errs := []error{s.control.Close()}
	for _, r := range s.requests {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// Group is the queue group in which the agent's replicas share requests.
func (in *Inbox) Group() string { return wire.QueueGroup(in.cfg.Self) }

// Shutdown takes no more requests and waits for those that run or wait for their turn,
// which comes in order as before. Those that wait for a person are refused at once. When
// ctx ends first, it cancels their contexts and waits for them all the same, and the
// error wraps ctx's; those that waited are refused, as are requests that had arrived and
// not been accepted, so that their callers turn to another replica. Later ones are the
// broker's to report.
func (in *Inbox) Shutdown(ctx context.Context) error {
	in.requests.close()
	in.requests.stopAsking()
	// At once, not when the topics have been drained: that waits for an inline skill.
	defer context.AfterFunc(ctx, func() { in.stop(ErrShutdown) })()
	in.mu.Lock()
	subscribed, receivers := in.subscriptions, in.receivers
	in.subscriptions, in.receivers = nil, nil
	in.mu.Unlock()
	// Side by side with the requests of the topics: both share the time that ctx
	// gives. What is put back must go to another replica, and not come here again.
	stopped := stopReceivers(ctx, receivers)
	// Requests first and control last, so that running calls can be cancelled until
	// the end.
	var errs []error
	for _, s := range subscribed {
		for _, r := range s.requests { // Drain hands over what has arrived: register refuses it as busy
			errs = append(errs, r.Drain(ctx))
		}
	}
	finished := make(chan struct{})
	// Ends at the latest when the last handler returns, for which Shutdown waits in
	// any case.
	go func() { in.requests.serving.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-ctx.Done():
		errs = append(errs, fmt.Errorf("callee: requests were cut short: %w", context.Cause(ctx)))
		in.stop(ErrShutdown)
		<-finished
	}
	in.stop(ErrShutdown) // ends the liveness checks too
	in.checking.Wait()
	in.workers.stop()
	errs = append(errs, <-stopped)
	for _, s := range subscribed {
		errs = append(errs, s.control.Close())
	}
	return errors.Join(errs...)
}
