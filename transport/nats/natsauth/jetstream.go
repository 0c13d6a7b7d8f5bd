package natsauth

import (
	"slices"

	"github.com/agentd/agentd/fleet"
)

// APIPrefix is the parent subject under which an agent's account imports the parts of
// the JetStream API that the agent may use. It is not $JS.API: under that name every
// account has an API of its own, which answers that JetStream is off.
const APIPrefix = "agentd.js"

// ConsumerName is the consumer of the requests to an agent, which its replicas share.
const ConsumerName = "agentd"

// A Queue is what an agent uses of JetStream, from an account of its own.
//
// An account that has JetStream gives everybody in it, who may as much as acknowledge a
// message, the whole API: JetStream answers on the reply subject of a request without
// a check of permissions, and takes what arrives there for a request of its own. So no
// agent shares an account with JetStream, or with what another agent imports from it.
// Replies cross the border of an account under names that the server makes up.
type Queue struct {
	// ID is the agent's id.
	ID string `json:"id"`

	name string // in the names on the broker, see fleet.Fleet.BrokerName

	// Requests is the subject of the agent's requests, if the broker keeps them.
	Requests string `json:"requests,omitempty"`
	// Calls reports whether the agent calls peers whose requests the broker keeps.
	Calls bool `json:"calls"`
	// Limits reports whether the agent's replicas share their rate limits.
	Limits bool `json:"limits"`
	// Idempotency reports whether the agent's replicas share what they have served.
	Idempotency bool `json:"idempotency"`
	// Services are the subjects to which the agent may publish.
	Services []Import `json:"services"`
	// Streams are the subjects to which it may subscribe.
	Streams []Import `json:"streams"`
}

// An Import is a subject of the account that has JetStream, and the name that it has in
// the agent's account.
type Import struct {
	Subject string `json:"subject"`
	// To is the name in the agent's account. It is Subject but for the JetStream API.
	To string `json:"to"`
	// Many is set for requests that get more than one answer.
	Many bool `json:"many,omitempty"`
}

// newQueue derives what a member uses of JetStream. ok is false if it uses nothing.
func newQueue(f *fleet.Fleet, m *fleet.Member, opts Options) (q Queue, ok bool) {
	q = Queue{ID: m.ID, name: f.BrokerName(m.Address), Services: []Import{}, Streams: []Import{}}
	if requests := requestSubjects(m); len(requests) > 0 {
		if m.Capabilities.KeepsRequests() {
			q.keepRequests(requests[0])
		}
		if q.Limits = sharesLimits(m); q.Limits {
			q.addBucket(LimitsBucket(q.name))
		}
		if q.Idempotency = m.Agent.Idempotency.Shared; q.Idempotency {
			q.addBucket(AnswersBucket(q.name))
			q.addBucket(MessagesBucket(q.name))
		}
	}
	for _, p := range m.Peers {
		subjects := natsSubjects(p.Transports)
		if p.InFleet && p.Address != m.Address && len(subjects) > 0 && mayKeepRequests(p.Document) && opts.allows(m.Address, p.Address) {
			q.addCallee(f.BrokerName(p.Address), subjects[0])
		}
	}
	return q, len(q.Services) > 0
}

// keepRequests adds what serving kept requests takes: the agent's own consumer, its
// answers, and its dead letters.
func (q *Queue) keepRequests(subject string) {
	q.Requests = subject
	queue, results, dead := RequestsStream(q.name), ResultsStream(q.name), DeadStream(q.name)
	q.addAPI("CONSUMER.INFO."+queue+"."+ConsumerName, false)
	q.addAPI("CONSUMER.MSG.NEXT."+queue+"."+ConsumerName, true)
	q.add("$JS.ACK." + queue + "." + ConsumerName + ".>")
	q.add(RequestsSubject(subject)) // to put back what cannot be served now
	q.addAPI("DIRECT.GET."+results+"."+resultsOf(q.name)+".>", false)
	q.add(resultsOf(q.name) + ".>")
	q.add(DeadSubject(q.name))
	// What `agentd dlq` takes. These streams hold nothing that the agent has not
	// published itself.
	q.addAPI("STREAM.INFO."+dead, false)
	q.addAPI("DIRECT.GET."+dead, false)
	q.addAPI("STREAM.MSG.DELETE."+dead, false)
	q.addAPI("STREAM.INFO."+results, false)
	q.addAPI("STREAM.PURGE."+results, false)
}

// addCallee adds what calling an agent that keeps requests takes: its queue, and the
// answers to this agent. It is harmless if the callee keeps none.
func (q *Queue) addCallee(callee, subject string) {
	if !q.Calls {
		q.Calls = true
		q.addBucket(CallsBucket(q.name))
	}
	q.add(RequestsSubject(subject))
	results := ResultsSubject(callee, q.name) + ".*"
	q.addAPI("DIRECT.GET."+ResultsStream(callee)+"."+results, false)
	answered := AnsweredSubject(ServiceName(callee), q.name) + ".*"
	q.Streams = append(q.Streams, Import{Subject: answered, To: answered})
}

// addBucket adds what using a key-value bucket (ADR-8) takes. A client with an API
// prefix writes below the prefix too.
func (q *Queue) addBucket(bucket string) {
	stream, keys := "KV_"+bucket, "$KV."+bucket+".>"
	q.addAPI("STREAM.INFO."+stream, false)
	q.addAPI("DIRECT.GET."+stream+"."+keys, false)
	q.Services = append(q.Services, Import{Subject: keys, To: APIPrefix + "." + keys})
}

func (q *Queue) addAPI(request string, many bool) {
	q.Services = append(q.Services, Import{Subject: "$JS.API." + request, To: APIPrefix + "." + request, Many: many})
}

func (q *Queue) add(subject string) {
	if !slices.ContainsFunc(q.Services, func(i Import) bool { return i.Subject == subject }) {
		q.Services = append(q.Services, Import{Subject: subject, To: subject})
	}
}

// resultsOf is the parent subject of an agent's answers.
func resultsOf(id string) string { return "agentd.results." + ServiceName(id) }
