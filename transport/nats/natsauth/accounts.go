package natsauth

import "strings"

// Keys that belong to no agent. Their names have upper-case letters, which no agent's id
// has.
const (
	// OperatorKey is that of the user who may do everything in the account that has
	// JetStream: `agentd fleet provision` uses it.
	OperatorKey = "OPERATOR"
	// ObserverKey is that of a user who may find out which agents run, as `agentd fleet
	// status` does, and nothing else.
	ObserverKey = "OBSERVER"
)

// queueSuffix makes the name of a key for JetStream of that of an agent's own.
const queueSuffix = "+jetstream"

// QueueKey is the name of the key with which an agent uses JetStream.
func QueueKey(id string) string { return id + queueSuffix }

// KeyNames are the names of all keys that the rules need.
func (r *Rules) KeyNames() []string {
	var names []string
	for _, u := range r.Users {
		names = append(names, u.ID)
	}
	names = append(names, ObserverKey)
	for _, q := range r.Queues {
		names = append(names, QueueKey(q.ID))
	}
	if len(r.Queues) > 0 {
		names = append(names, OperatorKey)
	}
	return names
}

// CallsAccount is the name of the account for calls.
func (r *Rules) CallsAccount() string { return accountName(r.Fleet) }

// JetStreamAccount is the name of the account that has JetStream.
func (r *Rules) JetStreamAccount() string { return accountName(r.Fleet) + "+jetstream" }

// QueueAccount is the name of the account from which an agent uses JetStream.
func (r *Rules) QueueAccount(id string) string {
	return accountName(r.Fleet) + "+jetstream+" + ServiceName(id)
}

// accountName is the fleet's part of the names of its accounts. The + in the names of
// further ones keeps them apart from another fleet's.
func accountName(fleet string) string {
	return "agentd_" + strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, fleet)
}

// observer may ask which agents run, and hear their answers.
func (r *Rules) observer() User {
	return User{
		ID: ObserverKey, InboxPrefix: InboxPrefix(ObserverKey),
		Publish: []string{"$SRV.PING.>", "$SRV.INFO.>", "$SRV.STATS.>", "$SRV.PING", "$SRV.INFO", "$SRV.STATS"}, Subscribe: []string{InboxPrefix(ObserverKey) + ".>"},
	}
}
