package natsauth_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// An attack is what mallory tries.
type attack struct {
	name  string
	steps []step
}

// prefixes are the names under which he may try the JetStream API.
var prefixes = []string{"$JS.API", natsauth.APIPrefix}

// attacks are those that nats-server invites in one way or another.
func attacks(rules *natsauth.Rules, ack string) []attack {
	const victim = "AGENTD_REQUESTS_alice"
	capture := `{"name":"EVIL","subjects":["agents.carol.requests","_INBOX.bob.>"],"storage":"memory"}`
	source := `{"name":%q,"subjects":[%q],"storage":"file","sources":[{"name":"KV_agentd-limits-alice"},{"name":"AGENTD_RESULTS_alice"}]}`
	reader := `{"stream_name":%q,"config":{"name":"x","ack_policy":"none","deliver_subject":%q}}`
	all := []attack{
		{"make a stream that captures others' subjects", api("STREAM.CREATE.EVIL", capture)},
		{"make a bucket of one's own that copies others' streams", api("STREAM.CREATE.KV_mallory", fmt.Sprintf(source, "KV_mallory", "$KV.mallory.>"))},
		{"change one's own stream into a copy of others", api("STREAM.UPDATE.AGENTD_DEAD_mallory", fmt.Sprintf(source, "AGENTD_DEAD_mallory", "agentd.dead.mallory"))},
		{"change one's own bucket into a copy of others", api("STREAM.UPDATE.KV_agentd-limits-mallory",
			`{"name":"KV_agentd-limits-mallory","subjects":["$KV.agentd-limits-mallory.>"],"storage":"memory","max_msgs_per_subject":1,"discard":"new","max_age":172800000000000,`+
				`"allow_rollup_hdrs":true,"deny_delete":true,"allow_direct":true,"sources":[{"name":"AGENTD_RESULTS_alice"}]}`)},
		{"have one's own stream republish into another's inbox", api("STREAM.UPDATE.AGENTD_DEAD_mallory",
			`{"name":"AGENTD_DEAD_mallory","subjects":["agentd.dead.mallory"],"storage":"file","republish":{"src":">","dest":"_INBOX.bob.>"}}`)},
		{"delete another's stream", api("STREAM.DELETE."+victim, "")},
		{"delete one's own", api("STREAM.DELETE.AGENTD_RESULTS_mallory", "")},
		{"purge another's stream", api("STREAM.PURGE."+victim, "")},
		{"list streams with their subjects", slices.Concat(api("STREAM.LIST", ""), api("STREAM.NAMES", ""), api("STREAM.INFO.KV_agentd-limits-alice", `{"subjects_filter":">"}`))},
		{"read another's stream by push", api("CONSUMER.CREATE.AGENTD_RESULTS_alice.x", fmt.Sprintf(reader, "AGENTD_RESULTS_alice", loot+".push"))},
		{"read one's own bucket by push into another's inbox", slices.Concat(
			both("$KV.agentd-limits-mallory.x", "1"), both(natsauth.APIPrefix+".$KV.agentd-limits-mallory.x", "1"),
			api("CONSUMER.CREATE.KV_agentd-limits-mallory.x", fmt.Sprintf(reader, "KV_agentd-limits-mallory", "_INBOX.bob.x")))},
		{"change one's own consumer", api("CONSUMER.CREATE.AGENTD_REQUESTS_mallory.agentd",
			`{"stream_name":"AGENTD_REQUESTS_mallory","config":{"name":"agentd","durable_name":"agentd","ack_policy":"explicit","ack_wait":1000000000,"max_deliver":-1,"max_ack_pending":1}}`)},
		{"make a durable consumer, the old way", api("CONSUMER.DURABLE.CREATE.AGENTD_RESULTS_alice.x", `{"stream_name":"AGENTD_RESULTS_alice","config":{"durable_name":"x","ack_policy":"explicit"}}`)},
		{"delete another's consumer", api("CONSUMER.DELETE."+victim+".agentd", "")},
		{"pull another's requests", api("CONSUMER.MSG.NEXT."+victim+".agentd", "")},
		{"acknowledge another's requests, and read the next", slices.Concat(both("$JS.ACK."+victim+".agentd.1.1.1.1.0", "+NXT"), both("$JS.ACK."+victim+".agentd.1.1.1.1.0", "+TERM"))},
		{"read another's stream, message by message", slices.Concat(
			api("STREAM.MSG.GET."+victim, `{"seq":1}`), api("DIRECT.GET."+victim, `{"seq":1}`), api("DIRECT.GET."+victim+".agents.alice.requests.durable", ""),
			api("STREAM.MSG.DELETE."+victim, `{"seq":1}`))},
		{"read answers to others", slices.Concat(
			api("DIRECT.GET.AGENTD_RESULTS_alice", `{"seq":1}`), api("DIRECT.GET.AGENTD_RESULTS_alice.agentd.results.alice.bob.c1", ""),
			// The grant is for answers to mallory; a body must not widen it.
			api("DIRECT.GET.AGENTD_RESULTS_alice.agentd.results.alice.mallory.c1", `{"last_by_subj":"agentd.results.alice.bob.c1"}`),
			api("DIRECT.GET.AGENTD_RESULTS_alice.agentd.results.alice.mallory.c1", `{"seq":1}`))},
		{"read and write others' buckets", slices.Concat(
			api("DIRECT.GET.KV_agentd-limits-alice.$KV.agentd-limits-alice.k", ""), api("DIRECT.GET.KV_agentd-calls-bob.$KV.agentd-calls-bob.k", ""),
			both("$KV.agentd-limits-alice.k", "0"), both(natsauth.APIPrefix+".$KV.agentd-limits-alice.k", "0"))},
		{"read and forge what another's replicas have answered", slices.Concat(
			api("STREAM.INFO.KV_agentd-answers-alice", `{"subjects_filter":">"}`), api("DIRECT.GET.KV_agentd-answers-alice.$KV.agentd-answers-alice.k", ""),
			api("STREAM.MSG.GET.KV_agentd-answers-alice", `{"seq":1}`),
			// One's own grant, with the body that asks for another's entry.
			api("DIRECT.GET.KV_agentd-answers-mallory.$KV.agentd-answers-mallory.k", `{"last_by_subj":"$KV.agentd-answers-alice.k"}`),
			both("$KV.agentd-answers-alice.k", "forged"), both(natsauth.APIPrefix+".$KV.agentd-answers-alice.k", "forged"))},
		{"make another's replicas forget, or believe that they have served", slices.Concat(
			api("STREAM.PURGE.KV_agentd-messages-alice", ""), api("STREAM.DELETE.KV_agentd-messages-alice", ""), api("STREAM.MSG.DELETE.KV_agentd-messages-alice", `{"seq":1}`),
			both("$KV.agentd-messages-alice.k2", ""), both(natsauth.APIPrefix+".$KV.agentd-messages-alice.k2", ""))},
		{"publish answers and dead letters in another's name", slices.Concat(
			both("agentd.results.alice.bob.c2", "forged"), both("agentd.answered.alice.bob.c2", "forged"), both("agentd.dead.alice", "forged"), both("agents.carol.requests.durable", "forged"))},
		{"hear others", subscribe(">", "agents.>", "agents.alice.requests", "_INBOX.>", "_INBOX.bob.>", "_R_.>", "agentd.answered.*.bob.*", "agentd.results.>", "$KV.>", "$SYS.>", "$JS.>")},
		{"call agents that are no peers, and write into inboxes", slices.Concat(
			both("agents.carol.requests", "x"), both("agents.carol.requests.control", "x"), both("_INBOX.bob.x", "x"), both("_INBOX.alice.x", "x"), both("_INBOX.operator.x", "x"))},
		{"administer the server", slices.Concat(api("META.LEADER.STEPDOWN", ""), api("ACCOUNT.PURGE.$G", ""), both("$SYS.REQ.SERVER.PING.CONNZ", ""), api("STREAM.SNAPSHOT."+victim, `{"deliver_subject":"`+loot+`.snapshot"}`))},
	}
	return append(all, deputies(rules, ack)...)
}

// deputies are attacks by the reply subject: each right that mallory has, with an answer
// that is to do harm where it arrives.
func deputies(rules *natsauth.Rules, ack string) (all []attack) {
	q := rules.Queues[slices.IndexFunc(rules.Queues, func(q natsauth.Queue) bool { return q.ID == "mallory" })]
	targets := []string{
		"STREAM.PURGE.AGENTD_RESULTS_alice", "STREAM.DELETE.AGENTD_DEAD_alice", "CONSUMER.CREATE.AGENTD_RESULTS_alice.x",
		"STREAM.CREATE.EVIL", "CONSUMER.MSG.NEXT.AGENTD_REQUESTS_alice.agentd",
	}
	replies := []string{"_INBOX.bob.x", "agents.carol.requests", "agents.alice.requests", "agentd.results.alice.bob.c3", "agentd.answered.alice.bob.c3", "$KV.agentd-limits-alice.k"}
	for _, target := range targets {
		for _, prefix := range prefixes {
			replies = append(replies, prefix+"."+target)
		}
	}
	bodies := []string{
		"", "{}", `{"batch":1,"no_wait":true}`,
		`{"stream_name":"AGENTD_RESULTS_alice","config":{"name":"x","ack_policy":"none","deliver_subject":"` + loot + `.push"}}`,
	}
	for _, service := range q.Services {
		subject := strings.NewReplacer(">", "x", "*", "x").Replace(service.To)
		name := subject
		if strings.HasPrefix(subject, "$JS.ACK.") {
			subject, name = ack, "$JS.ACK"
		}
		subjects := []string{subject}
		if raw, ok := strings.CutPrefix(subject, natsauth.APIPrefix+"."); ok { // as on a server without rules
			if !strings.HasPrefix(raw, "$KV.") {
				raw = "$JS.API." + raw
			}
			subjects = append(subjects, raw)
		}
		a := attack{name: "have the answer to " + name + " do harm"}
		for _, body := range bodies {
			// A key of one's own with the body: a direct get answers with it.
			for _, key := range []string{natsauth.APIPrefix + ".$KV.agentd-limits-mallory.x", "$KV.agentd-limits-mallory.x"} {
				a.steps = append(a.steps, step{By: jetStreamConn, Publish: key, Data: body})
			}
			for _, subject := range subjects {
				for _, reply := range replies {
					a.steps = append(a.steps, step{By: jetStreamConn, Publish: subject, Reply: reply, Data: body})
				}
			}
		}
		all = append(all, a)
	}
	return all
}

// api is a request to the JetStream API, by both connections and under every name.
func api(request, body string) (steps []step) {
	for _, prefix := range prefixes {
		steps = append(steps, both(prefix+"."+request, body)...)
	}
	return steps
}

func both(subject, data string) []step {
	return []step{
		{By: callsConn, Publish: subject, Reply: loot + ".answer", Data: data},
		{By: jetStreamConn, Publish: subject, Reply: loot + ".answer", Data: data},
	}
}

func subscribe(subjects ...string) (steps []step) {
	for _, s := range subjects {
		steps = append(steps, step{By: callsConn, Subscribe: s}, step{By: jetStreamConn, Subscribe: s})
	}
	return steps
}

// pulled pulls mallory's own request, and returns where it is acknowledged.
func (a *arena) pulled() string {
	a.t.Helper()
	consumer, err := a.js.Consumer(a.t.Context(), "AGENTD_REQUESTS_mallory", natsauth.ConsumerName)
	if err != nil {
		a.t.Fatal(err)
	}
	m, err := consumer.Next()
	if err != nil {
		a.t.Fatal(err)
	}
	return m.Reply()
}

// No attack of a member does harm on a server with the rules, whichever its version and
// whichever client the attacker has.
func TestAttacks(t *testing.T) {
	t.Parallel()
	rules, conf, keys := hostileFleet(t)
	natstest.EachVersion(t, conf+"\n"+storage, func(t *testing.T, url string) {
		newArena(t, url, rules, func(name string) string { return natsauth.KeyFile(keys, name) }).attack()
	})
}

// The same in operator mode, where the rules are accounts and credentials.
func TestAttacksInOperatorMode(t *testing.T) {
	t.Parallel()
	rules, _, _ := hostileFleet(t)
	rules.Fleet = "test" // a name that accounts may have
	o := natstest.NewOperator(t)
	natstest.EachVersion(t, o.Conf+storage, func(t *testing.T, url string) {
		keys := t.TempDir()
		push(t, o, url, keys, rules)
		newArena(t, url, rules, func(name string) string { return natsauth.CredsFile(keys, name) }).attack()
	})
}

// attack tries all attacks, and reports those that do harm.
func (a *arena) attack() {
	t := a.t
	var together []step
	for _, attack := range attacks(a.rules, a.pulled()) {
		if harm := a.harm(goClient, attack.steps); len(harm) > 0 {
			t.Errorf("%s:\n%s", attack.name, strings.Join(harm, "\n"))
		}
		together = append(together, attack.steps...)
	}
	if !hasNode() {
		t.Log("SKIPPED: no hostile client in Node; set AGENTD_NODE_MODULES to a node_modules with @nats-io/transport-node")
		return
	}
	// All at once: a process for each attack would take long.
	if harm := a.harm(nodeClient, together); len(harm) > 0 {
		t.Errorf("in Node:\n%s", strings.Join(harm, "\n"))
	}
}

// storage is the server's JetStream. The embedded server may be one of many at a time.
const storage = "jetstream { max_memory_store: 64MB, max_file_store: 256MB }\n"

// hasNode reports whether there is a client for Node.
func hasNode() bool {
	_, missing := exec.LookPath("node")
	_, err := os.Stat(filepath.Join(os.Getenv("AGENTD_NODE_MODULES"), "@nats-io", "transport-node"))
	return missing == nil && err == nil
}

// The attacks are real: where everybody shares an account with JetStream, they do harm.
func TestAttacksBite(t *testing.T) {
	t.Parallel()
	rules, _, _ := hostileFleet(t)
	a := newArena(t, natstest.Run(t, storage).URL(), rules, nil)
	for i, attack := range attacks(rules, "") {
		if strings.HasPrefix(attack.name, "administer") {
			continue // that takes the system account, everywhere
		}
		// A consumer serves pull requests beside the JetStream API, after which harm does not look.
		eventually.Holds(t, attack.name+" does harm without rules, else it is no attack", func() bool {
			a.furnish()
			return len(a.harm(goClient, attacks(rules, a.pulled())[i].steps)) > 0
		})
	}
}
