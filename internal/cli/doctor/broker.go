package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/durable"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

const (
	// envelopeRoom is what an envelope adds to a payload, with room to spare. Servers take as
	// much as agents by default: only a limit that was raised on one side alone is worth a word.
	envelopeRoom = 16 << 10
	// slowBroker is a round trip to the broker beyond which it adds more to each call than
	// most skills do.
	slowBroker = 50 * time.Millisecond
	// slightlyBadClock and badClock are what a clock may differ from the broker's, beyond what
	// the agent's file tolerates. Deadlines of calls are points in time.
	slightlyBadClock = 250 * time.Millisecond
	badClock         = 5 * time.Second
)

// broker connects as the agent does, and examines what it finds there.
func (p *patient) broker(ctx context.Context) {
	if p.status != nil && !slices.Contains(p.status.Transports, nats.Kind) {
		p.say(checkBroker, skipped, "", "the agent runs without one: all whom it calls are in its process")
		return
	}
	asked, opts := time.Now(), nats.FromEnv(p.env.Getenv)
	v, uses, err := daemon.VisitNATS(ctx, p.paths, p.member, opts)
	took := time.Since(asked)
	switch {
	case !uses:
		p.say(checkBroker, skipped, "", "the agent has no transport of kind nats")
		return
	case errors.Is(err, transport.Denied):
		p.say(checkBroker, fail, "run this with the agent's own environment (AGENTD_NATS_CREDS, AGENTD_NATS_NKEY, …), or make credentials: agentd fleet nats-config",
			"the broker refuses the agent's credentials: %v", err)
		return
	case isTLS(err):
		p.say(checkBroker, fail, "mend the certificate of the broker, or the files of AGENTD_NATS_CA, AGENTD_NATS_CERT and AGENTD_NATS_KEY: a running agent reads them again by itself",
			"is there, but no TLS connection can be made to it: %v", err)
		return
	case err != nil && p.status == nil && daemon.NeedsNoBroker(p.member, opts):
		p.say(checkBroker, skipped, "start one (agentd broker) for agents in processes of their own (agentd run)",
			"none can be reached, and `agentd fleet run` needs none: in one process memory reaches all whom the agent calls (%v)", err)
		return
	case err != nil:
		p.say(checkBroker, fail, "start it (agentd broker), name another one (AGENTD_NATS_URL), or open the way to it", "cannot be reached: %v", err)
		return
	}
	defer func() { _ = v.Close() }() // nothing was written that could be lost
	p.connection(v, took)
	p.rights(ctx, v)
	p.jetStream(ctx, v)
}

// isTLS reports whether a broker is there, with which TLS fails.
func isTLS(err error) bool {
	_, ok := errors.AsType[*nats.TLSError](err)
	return ok
}

// connection judges the connection for calls.
func (p *patient) connection(v *daemon.Visit, took time.Duration) {
	nc := v.Calls.Client()
	rtt, err := nc.RTT()
	if err != nil {
		p.say(checkBroker, fail, "look into the log of the broker", "connects, and then does not answer: %v", err)
		return
	}
	where := fmt.Sprintf("nats-server %s at %s, round trip %s, connected in %s",
		nc.ConnectedServerVersion(), nc.ConnectedUrlRedacted(), rtt.Round(10*time.Microsecond), took.Round(time.Millisecond))
	if rtt > slowBroker {
		p.say(checkBroker, warn, "bring a server nearer (a leaf node, a super-cluster)", "%s: it is added to each call twice", where)
	} else {
		p.say(checkBroker, ok, "", "%s", where)
	}
	if limit, most := p.member.Agent.Limits.MaxPayloadBytes, v.Calls.MaxMessageBytes(); limit > most {
		p.say(checkBroker, warn, fmt.Sprintf("raise the server's max_payload to %d, or lower limits.maxPayloadBytes", limit+envelopeRoom),
			"takes messages of %d bytes, and the agent payloads of %d: the largest calls fail", most, limit)
	}
}

// jetStream looks for what the agent uses of JetStream, and compares clocks by the way: the
// server says in its answers when it gave them.
func (p *patient) jetStream(ctx context.Context, v *daemon.Visit) {
	queue := p.queue()
	if queue == nil {
		p.say(checkClock, skipped, "", "only JetStream tells the broker's time, and the agent does not use it; peers that answer tell theirs")
		return
	}
	js, err := v.JetStream.JetStream()
	if err != nil {
		p.say(checkJetStream, fail, "switch JetStream on in nats-server's configuration", "not available: %v", err)
		return
	}
	if v.JetStream.Provisioned() {
		p.provisioned(ctx, v, queue)
	} else {
		p.ownAssets(ctx, js, queue)
	}
	p.clock(ctx, v)
}

// queue is what the agent uses of JetStream, nil for nothing.
func (p *patient) queue() *natsauth.Queue {
	if p.rules == nil {
		return nil
	}
	for i := range p.rules.Queues {
		if p.rules.Queues[i].ID == p.member.ID {
			return &p.rules.Queues[i]
		}
	}
	return nil
}

// ownAssets compares streams, consumer and buckets with what the agent wants. It makes them
// itself when it starts, where nobody else does.
func (p *patient) ownAssets(ctx context.Context, js jetstream.JetStream, q *natsauth.Queue) {
	want := durable.ResourcesOf(daemon.DurableOptions(p.fleet, p.member), q.Requests, q.Calls)
	want.Buckets = append(want.Buckets, daemon.SharedBuckets(p.fleet, p.member, q)...)
	all, err := want.Provision(ctx, js, true)
	if err != nil {
		p.say(checkJetStream, fail, "switch JetStream on in nats-server's configuration, or give the agent credentials that may use it", "%v", err)
		return
	}
	sound := 0
	for _, f := range all {
		switch {
		case f.State == durable.AsWanted:
			sound++
		case f.State == durable.Missing && f.Name == natsauth.CallsBucket(p.fleet.BrokerName(p.member.Address)):
			p.say(checkJetStream, ok, "", "the %s %s is not there yet: the agent makes it with its first asynchronous call", f.Kind, f.Name)
		case f.State == durable.Missing && p.agent == nil:
			p.say(checkJetStream, ok, "", "the %s %s is not there yet: the agent makes it when it starts", f.Kind, f.Name)
		case f.State == durable.Missing:
			p.say(checkJetStream, fail, "restart the agent, or make it: agentd fleet provision", "the %s %s is missing", f.Kind, f.Name)
		default:
			p.say(checkJetStream, warn, "agentd fleet provision", "the %s %s differs: %s", f.Kind, f.Name, strings.Join(f.Settings, "; "))
		}
	}
	if sound > 0 {
		p.say(checkJetStream, ok, "", "%s as wanted", count(sound, "resource"))
	}
}

// provisioned looks for what an operator has to make, by the questions that the agent may ask.
func (p *patient) provisioned(ctx context.Context, v *daemon.Visit, q *natsauth.Queue) {
	found, missing := 0, 0
	for _, asset := range infoRequests(q) {
		_, err := ask(ctx, v, asset)
		switch {
		case err == nil:
			found++
		case errors.Is(err, errNotThere):
			missing++
			p.say(checkJetStream, fail, "agentd fleet provision", "%s is missing", asset.name)
		default:
			missing++
			p.say(checkJetStream, fail, "agentd fleet nats-config, and reload nats-server", "%s: %v", asset.name, err)
		}
	}
	if missing == 0 {
		p.say(checkJetStream, ok, "", "%s, made by an operator", count(found, "resource"))
	}
}

// An asset is a stream or consumer, and the request for what the server says of it.
type asset struct{ name, request string }

// infoRequests are the questions about streams and consumers that an agent's rules let it ask.
func infoRequests(q *natsauth.Queue) (all []asset) {
	for _, s := range q.Services {
		request, isAPI := strings.CutPrefix(s.Subject, "$JS.API.")
		if name, isStream := strings.CutPrefix(request, "STREAM.INFO."); isAPI && isStream {
			what := "the stream " + name
			if bucket, isBucket := strings.CutPrefix(name, "KV_"); isBucket {
				what = "the bucket " + bucket
			}
			all = append(all, asset{what, request})
		} else if name, isConsumer := strings.CutPrefix(request, "CONSUMER.INFO."); isAPI && isConsumer {
			all = append(all, asset{"the consumer of " + strings.TrimSuffix(name, "."+natsauth.ConsumerName), request})
		}
	}
	return all
}

// errNotThere means that the server does not know a stream or a consumer.
var errNotThere = errors.New("not found")

// ask asks JetStream about an asset, and returns the time of the server's answer.
func ask(ctx context.Context, v *daemon.Visit, a asset) (at time.Time, err error) {
	reply, err := v.JetStream.Client().RequestWithContext(ctx, v.JetStream.JetStreamAPI()+"."+a.request, nil)
	if err != nil {
		return at, err
	}
	var answer struct {
		Error *struct {
			Code        int    `json:"code"`
			Description string `json:"description"`
		} `json:"error"`
		Time time.Time `json:"ts"`
	}
	switch err := json.Unmarshal(reply.Data, &answer); {
	case err != nil:
		return at, fmt.Errorf("JetStream's answer: %w", err)
	case answer.Error == nil:
		return answer.Time, nil
	case answer.Error.Code == 404:
		return at, errNotThere
	default:
		return at, errors.New(answer.Error.Description)
	}
}

// clock compares this host's clock with the broker's.
func (p *patient) clock(ctx context.Context, v *daemon.Visit) {
	for _, a := range infoRequests(p.queue()) {
		before := time.Now()
		at, err := ask(ctx, v, a)
		after := time.Now()
		if err != nil || at.IsZero() {
			continue
		}
		// The answer was given between the two.
		var skew time.Duration
		switch {
		case at.Before(before):
			skew = before.Sub(at)
		case at.After(after):
			skew = at.Sub(after)
		}
		l, remedy := ok, "synchronize the clocks of this host and of the broker's (NTP)"
		switch beyond := skew - p.member.Agent.Security.ClockSkew; {
		case beyond > badClock:
			l = fail
		case beyond > slightlyBadClock:
			l = warn
		}
		p.say(checkClock, l, remedy, "%s from that of the broker: calls between hosts with such clocks lose as much of their deadline", skew.Round(time.Millisecond))
		return
	}
	p.say(checkClock, skipped, "", "no stream of the agent is there, whose server would tell the time")
}
