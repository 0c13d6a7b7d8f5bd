package nats

import (
	"strings"
	"unicode"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/transport"
)

// inboxes is the parent subject of all reply inboxes.
const inboxes = "_INBOX."

// InboxPrefix is the parent subject of an agent's reply inboxes, for
// [Options].InboxPrefix. A + in the place of each dot keeps it one subject part, so
// that no agent's prefix is below another's.
func InboxPrefix(id string) string { return inboxes + strings.ReplaceAll(id, ".", "+") }

// OwnsReply reports whether a reply subject belongs to an agent. These do:
//
//   - what is below the agent's own [InboxPrefix],
//   - agents.<id>.responses, where agents of the reference system take replies,
//   - an inbox that names nobody, _INBOX.<unique id>, as clients without a prefix open
//     them. Such an id cannot be guessed, so only its owner can have named it.
//
// Nothing else does, and above all no subject that starts with a $: to those a server
// listens itself.
func OwnsReply(agent envelope.Address, subject string) bool {
	if transport.CheckTopic("", subject) != nil {
		return false
	}
	if below, ok := strings.CutPrefix(subject, inboxes); ok {
		owner, _, deeper := strings.Cut(below, ".")
		return deeper && isInboxOf(owner, agent.ID()) || isUnique(owner)
	}
	id, ok := strings.CutPrefix(subject, "agents.")
	return ok && strings.TrimSuffix(id, ".responses") == agent.ID() && strings.HasSuffix(id, ".responses")
}

// isInboxOf reports whether a part of a subject stands for an id, as in [InboxPrefix]. It
// does not allocate: every request comes here.
func isInboxOf(part, id string) bool {
	if len(part) != len(id) {
		return false
	}
	for i := range len(id) {
		want := id[i]
		if want == '.' {
			want = '+'
		}
		if part[i] != want {
			return false
		}
	}
	return true
}

// minUnique is the length of the shortest part that counts as a unique id. The clients
// of NATS make ids of 22 characters.
const minUnique = 16

// isUnique reports whether a part of a subject is an id that a client has made up at
// random. The ids of agents have no upper-case letters.
func isUnique(part string) bool {
	return len(part) >= minUnique && strings.ContainsFunc(part, unicode.IsUpper)
}
