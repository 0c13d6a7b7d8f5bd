package natsauth

import "strings"

// InboxPrefix is where the reply inboxes of an agent are, for the prefix option of
// its connection. No agent's prefix is below another's.
func InboxPrefix(id string) string { return "_INBOX." + strings.ReplaceAll(id, ".", "+") }

// ServiceName is the agent's name as a NATS micro service (ADR-32) and in the
// names of its streams, where dots are not allowed.
func ServiceName(id string) string { return strings.ReplaceAll(id, ".", "_") }

// LimitsBucket is the JetStream key-value bucket in which the replicas of an
// agent share their rate limits.
func LimitsBucket(id string) string { return "agentd-limits-" + ServiceName(id) }

// CallsBucket is the bucket in which an agent notes the asynchronous calls that
// it has made.
func CallsBucket(id string) string { return "agentd-calls-" + ServiceName(id) }

// RequestsStream keeps the requests to an agent, ResultsStream its answers and
// DeadStream its dead letters.
func RequestsStream(id string) string { return "AGENTD_REQUESTS_" + ServiceName(id) }

// ResultsStream keeps an agent's answers.
func ResultsStream(id string) string { return "AGENTD_RESULTS_" + ServiceName(id) }

// DeadStream keeps an agent's dead letters.
func DeadStream(id string) string { return "AGENTD_DEAD_" + ServiceName(id) }

// RequestsSubject is where requests are kept for the agent whose requests subject
// is topic.
func RequestsSubject(topic string) string { return topic + ".durable" }

// ResultsSubject is above all of an agent's answers to one caller.
func ResultsSubject(callee, caller string) string {
	return "agentd.results." + ServiceName(callee) + "." + ServiceName(caller)
}

// AnsweredSubject is above all answers of a callee, as a service name or *, to one
// caller, once they are stored: there it hears of them.
func AnsweredSubject(service, caller string) string {
	return "agentd.answered." + service + "." + ServiceName(caller)
}

// DeadSubject is where an agent puts its dead letters.
func DeadSubject(id string) string { return "agentd.dead." + ServiceName(id) }
