package natsauth

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// answerTime is how long nats-server keeps the way back of a request to JetStream open:
// longer than a pull request waits.
const answerTime = 2 * time.Minute

// WriteConfig writes accounts and users in nats-server's configuration language. keys
// are the users' public nkeys, as [Rules.EnsureKeys] returns them; each user must have
// one.
//
// Calls have one account, in which users' permissions keep the members apart. Where
// members use JetStream, it has an account of its own, and each of them one that imports
// what that member may use.
func (r *Rules) WriteConfig(w io.Writer, keys map[string]string) error {
	for _, name := range r.KeyNames() {
		if keys[name] == "" {
			return fmt.Errorf("natsauth: no key for %s", name)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Who may call whom in the fleet %s. Written by `agentd fleet nats-config`:\n", quote(r.Fleet))
	b.WriteString("# write it again after the fleet's files have changed.\n")
	if len(r.External) > 0 {
		b.WriteString("# Called by members, and not members themselves, so without a user here:\n")
		for _, a := range r.External {
			fmt.Fprintf(&b, "#   %s\n", a)
		}
	}
	if len(r.Queues) > 0 {
		b.WriteString("# The server needs JetStream: `jetstream { store_dir: … }`, or `agentd broker`. Then run\n# `agentd fleet provision`, which makes streams, consumers and buckets.\n")
	}
	b.WriteString("accounts {\n")
	fmt.Fprintf(&b, "  %s: { # calls; no JetStream\n    users: [\n", quote(r.CallsAccount()))
	for _, u := range r.Users {
		u.write(&b, keys[u.ID])
	}
	observer := r.observer()
	observer.write(&b, keys[ObserverKey])
	b.WriteString("    ]\n  }\n")
	if len(r.Queues) > 0 {
		r.writeJetStream(&b, keys)
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// write writes one user of the account for calls.
func (u *User) write(b *strings.Builder, key string) {
	fmt.Fprintf(b, "      { # agent://%s\n        nkey: %s\n        permissions: {\n", u.ID, key)
	if len(u.Publish) > 0 {
		fmt.Fprintf(b, "          publish: { allow: %s }\n", list(u.Publish))
	} else {
		// To nats-server an empty list of allowed subjects means all.
		b.WriteString("          publish: { deny: [\">\"] }\n")
	}
	fmt.Fprintf(b, "          subscribe: { allow: %s }\n        }\n      }\n", list(u.Subscribe))
}

// writeJetStream writes the account that has JetStream, with what it exports to whom,
// and the members' accounts that import it.
func (r *Rules) writeJetStream(b *strings.Builder, keys map[string]string) {
	account := quote(r.JetStreamAccount())
	fmt.Fprintf(b, "  %s: { # the operator's: streams, consumers and buckets\n    jetstream: enabled\n", account)
	fmt.Fprintf(b, "    users: [{ nkey: %s }]\n    exports: [\n", keys[OperatorKey])
	for _, e := range r.exports() {
		kind := "service"
		if e.stream {
			kind = "stream"
		}
		fmt.Fprintf(b, "      { %s: %s, accounts: %s", kind, quote(e.subject), list(e.accounts))
		if e.many {
			fmt.Fprintf(b, ", response_type: stream, response_threshold: %q", answerTime)
		}
		b.WriteString(" }\n")
	}
	b.WriteString("    ]\n  }\n")
	for _, q := range r.Queues {
		fmt.Fprintf(b, "  %s: { # what agent://%s uses of JetStream\n    users: [{ nkey: %s }]\n    imports: [\n",
			quote(r.QueueAccount(q.ID)), q.ID, keys[QueueKey(q.ID)])
		for _, i := range q.Services {
			fmt.Fprintf(b, "      { service: { account: %s, subject: %s }, to: %s }\n", account, quote(i.Subject), quote(i.To))
		}
		for _, i := range q.Streams {
			fmt.Fprintf(b, "      { stream: { account: %s, subject: %s } }\n", account, quote(i.Subject))
		}
		b.WriteString("    ]\n  }\n")
	}
}

// An export is a subject of the account that has JetStream, for some accounts.
type export struct {
	subject      string
	stream, many bool
	accounts     []string
}

// exports are all that members import, each subject once.
func (r *Rules) exports() (all []export) {
	type key struct {
		subject string
		stream  bool
	}
	places := map[key]int{} // in all
	add := func(account string, i Import, stream bool) {
		at, ok := places[key{i.Subject, stream}]
		if !ok {
			at = len(all)
			places[key{i.Subject, stream}] = at
			all = append(all, export{subject: i.Subject, stream: stream, many: i.Many})
		}
		all[at].accounts = append(all[at].accounts, account)
	}
	for _, q := range r.Queues {
		for _, i := range q.Services {
			add(r.QueueAccount(q.ID), i, false)
		}
		for _, i := range q.Streams {
			add(r.QueueAccount(q.ID), i, true)
		}
	}
	return all
}

func list(subjects []string) string {
	quoted := make([]string, len(subjects))
	for i, s := range subjects {
		quoted[i] = quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// quote writes text as nats-server reads it. It drops control characters: a subject has
// none, and a line break would end a comment, so that the rest counts as configuration.
func quote(s string) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s)
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(clean) + `"`
}
