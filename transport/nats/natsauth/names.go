package natsauth

import (
	"strings"

	"github.com/agentd/agentd/transport/nats"
)

// InboxPrefix is the parent subject of an agent's reply inboxes.
func InboxPrefix(id string) string { return nats.InboxPrefix(id) }

// ServiceName is an agent's name as a NATS micro service (ADR-32), and in the names of
// its streams and buckets. None of them may contain dots.
func ServiceName(id string) string { return strings.ReplaceAll(id, ".", "_") }

// LimitsBucket is the JetStream key-value bucket in which the replicas of an
// agent share their rate limits.
func LimitsBucket(id string) string { return "agentd-limits-" + ServiceName(id) }

// AnswersBucket is the JetStream key-value bucket in which the replicas of an agent share
// their answers to requests with an idempotency key.
func AnswersBucket(id string) string { return "agentd-answers-" + ServiceName(id) }

// MessagesBucket is the JetStream key-value bucket in which the replicas of an agent
// remember which messages they have accepted.
func MessagesBucket(id string) string { return "agentd-messages-" + ServiceName(id) }

// CallsBucket is the JetStream key-value bucket in which an agent keeps notes about the
// asynchronous calls that it has made.
func CallsBucket(id string) string { return "agentd-calls-" + ServiceName(id) }

// RequestsStream keeps the requests to an agent until they are answered.
func RequestsStream(id string) string { return "AGENTD_REQUESTS_" + ServiceName(id) }

// ResultsStream keeps an agent's answers.
func ResultsStream(id string) string { return "AGENTD_RESULTS_" + ServiceName(id) }

// DeadStream keeps an agent's dead letters.
func DeadStream(id string) string { return "AGENTD_DEAD_" + ServiceName(id) }

// RequestsSubject is the subject of requests that the broker keeps, for the agent whose
// subject of requests is topic.
func RequestsSubject(topic string) string { return topic + ".durable" }

// ChangedSubject is the subject on which an agent announces to its callers that it serves
// another contract now, for the agent whose subject of requests is topic.
func ChangedSubject(topic string) string { return "agentd.changed." + topic }

// ResultsSubject is the parent subject of an agent's answers to one caller. The caller
// is last, so that a permission can end in it.
func ResultsSubject(callee, caller string) string {
	return resultsOf(callee) + "." + ServiceName(caller)
}

// AnsweredSubject is the parent subject on which the broker republishes the answers of a
// callee to one caller once they are stored. The callee is given as a service name, or
// * for all.
func AnsweredSubject(service, caller string) string {
	return "agentd.answered." + service + "." + ServiceName(caller)
}

// DeadSubject is the subject to which an agent publishes its dead letters.
func DeadSubject(id string) string { return "agentd.dead." + ServiceName(id) }
