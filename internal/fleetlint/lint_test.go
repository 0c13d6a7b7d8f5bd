package fleetlint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/fleetlint"
)

// office is a fleet in which everything works: desk calls clerk.
const office = `
-- fleet.yaml --
version: 1
name: office
agents: [{id: desk, path: ./desk}, {id: clerk, path: ./clerk}]
-- rpc-peers.yaml --
version: 1
peers:
  - agent: agent://clerk
    transports: [{kind: nats, servers: ["nats://127.0.0.1:4222"], subjects: {requests: agents.clerk.requests}}]
-- desk/agent.yaml --
name: desk
-- clerk/agent.yaml --
name: clerk
skills: {file: {process: {command: [sh, -c, cat]}}, other: {process: {command: [cat]}}}
-- clerk/capabilities.yaml --
version: 1
agent: agent://clerk
transports: [{kind: nats, servers: ["nats://127.0.0.1:4222"], subjects: {requests: agents.clerk.requests}}]
capabilities:
  - name: file
`

// check writes the office with some files replaced, and returns what the rules say
// of it, one finding a line.
func check(t *testing.T, changes string) string {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	for _, f := range append(txtar.Parse([]byte(office)).Files, txtar.Parse([]byte(changes)).Files...) {
		path := filepath.FromSlash(f.Name)
		if len(f.Data) == 0 {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	findings, err := fleetlint.Validate(".", fleet.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := findings.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

const (
	clean     = "✓ fleet validates clean.\n"
	oneDoubt  = "✓ fleet validates; warnings: 1.\n"
	twoDoubts = "✓ fleet validates; warnings: 2.\n"
	clerkOf   = "-- clerk/capabilities.yaml --\nversion: 1\nagent: agent://clerk\n"
	nats      = "{kind: nats, servers: [s], subjects: {requests: agents.clerk.requests}}"
	// tenants is the peers file of a fleet whose desk may name a tenant.
	tenants = "-- rpc-peers.yaml --\nversion: 1\npeers:\n  - {agent: agent://clerk, transports: [" + nats + "]}\n" +
		"  - {agent: agent://desk, tenants: [acme], transports: [" + nats + "]}\n"
)

// identityOf are the identities of a fleet in which one agent has one.
func identityOf(id string) string {
	return "-- identities.yaml --\nversion: 1\nidentities: [{agent: agent://" + id + ", auth: {provider: nkey, publicKey: UCTX6VFN44P2XDUL7YS43ZY6EK5ZLT7MTD3DU2WRNUSHXUF5DSUXMHN2}}]\n"
}

// atLeast is the peers file of a desk that asks for a version of the clerk's.
func atLeast(version string) string {
	return "-- rpc-peers.yaml --\nversion: 1\npeers: [{agent: agent://clerk, minSchemaVersion: " + version + ", transports: [" + nats + "]}]\n"
}

// capabilities is the clerk's file with one capability of these keys, on line 4.
func capabilities(keys string) string {
	return clerkOf + "transports: [" + nats + "]\ncapabilities: [{name: file, " + keys + "}]\n"
}

// taking is the clerk's file with these transports, on line 3.
func taking(transports string) string {
	return clerkOf + "transports: [" + transports + "]\ncapabilities: [{name: file}]\n"
}

func TestRules(t *testing.T) {
	for name, test := range map[string]struct{ changes, want string }{
		"all is well": {"", clean},

		"a server that is declared where it is used": {"-- desk/agent.yaml --\nname: desk\nmcpServers: {a: {url: 'https://mcp.example.com/'}}\ncapabilities: {mcp: {servers: {b: {url: 'https://mcp.example.com/'}, a: {}}}}\n" +
			"-- desk/mcp.lock.json --\n{\"version\": 1, \"servers\": {\"a\": {\"tools\": []}, \"b\": {\"tools\": []}}}\n",
			"· [key.deprecated] desk/agent.yaml:3:32: /capabilities/mcp/servers/b: the MCP server \"b\" is declared for this use alone, in the older form (declare it under mcpServers, with descriptions: refuse, and write servers: [b] here; `dir` begins at the fleet's folder there, and limits are keys of the server)\n" + clean},

		"nobody has peers": {"-- rpc-peers.yaml --\n",
			"! [call.none] fleet.yaml:3:10: /agents/0: no agent of this fleet can call anybody (list the agents that may be called in rpc-peers.yaml beside fleet.yaml)\n" + oneDoubt},
		"nobody is permitted": {"-- desk/agent.yaml --\nname: desk\npermissions: {deny: [\"RequestAgent:**\"]}\n",
			"! [call.none] fleet.yaml:3:10: /agents/0: no agent of this fleet can call anybody (`agentd permissions explain <from> <to> <capability>` names the rule that decides)\n" + oneDoubt},
		"the callee serves others": {capabilities(`callers: ["agent://board"]`),
			"! [call.none] fleet.yaml:3:10: /agents/0: no agent of this fleet can call anybody (`agentd permissions explain <from> <to> <capability>` names the rule that decides)\n" + oneDoubt},
		"a person decides": {"-- desk/agent.yaml --\nname: desk\npermissions: {ask: [\"RequestAgent:agent://clerk/*\"]}\n", clean},
		"no agents": {"-- fleet.yaml --\nversion: 1\nname: office\nagents: []\n",
			"! [call.none] fleet.yaml:1:1: the fleet has no agents: nothing runs (list its agents under agents)\n" +
				"! [peers.unused] rpc-peers.yaml:1:1: no agent of this fleet reads this peers file (name it as peersRef of an environment in fleet.yaml, or remove it)\n" + twoDoubts},
		"one agent, called from elsewhere": {"-- fleet.yaml --\nversion: 1\nname: office\nagents: [{id: clerk, path: ./clerk}]\n", clean},
		"one agent that can do nothing": {"-- fleet.yaml --\nversion: 1\nname: office\nagents: [{id: desk, path: ./desk}]\n-- rpc-peers.yaml --\nversion: 1\npeers: []\n",
			"! [call.none] fleet.yaml:3:10: /agents/0: no agent of this fleet can call anybody (list the agents that may be called in rpc-peers.yaml beside fleet.yaml)\n" + oneDoubt},
		"one of three is idle": {"-- fleet.yaml --\nversion: 1\nname: office\nagents:\n  - {id: desk, path: ./desk}\n  - {id: clerk, path: ./clerk}\n  - {id: idle, path: ./idle}\n" +
			"-- idle/agent.yaml --\nname: idle\n-- idle/rpc-peers.yaml --\nversion: 1\npeers: []\n",
			"! [call.none] fleet.yaml:6:5: /agents/2: agent \"idle\" offers no capabilities, and can call nobody (`agentd permissions explain <from> <to> <capability>` names the rule that decides)\n" + oneDoubt},

		"a rule for nothing": {"-- desk/agent.yaml --\nname: desk\npermissions:\n  allow: [\"RequestAgent:agent://clerk/file\", \"RequestAgent:agent://clerk/flie\", \"Bash:*\"]\n  deny: [\"RequestAgent:agent://later/*\"]\n",
			"! [permission.unmatched] desk/agent.yaml:3:46: /permissions/allow/1: the rule \"RequestAgent:agent://clerk/flie\" matches no capability of a peer (`agentd fleet graph` shows who offers what)\n" + oneDoubt},
		"a rule about a client for nothing": {"-- desk/agent.yaml --\nname: desk\npermissions: {allow: [\"MCP:*/agent://clerk/file\", \"MCP:cursor/agent://clerk/flie\", \"MCP:**\"]}\n",
			"! [permission.unmatched] desk/agent.yaml:2:51: /permissions/allow/1: the rule \"MCP:cursor/agent://clerk/flie\" matches no capability of a peer (`agentd fleet graph` shows who offers what)\n" + oneDoubt},
		"a person decides about calls to the clerk": {"-- clerk/agent.yaml --\nname: clerk\npermissions: {ask: [\"ServeAgent:agent://*/file\", \"ServeAgent:**\"]}\nskills: {file: {process: {command: [cat]}}}\n", clean},
		"nobody would be asked": {"-- clerk/agent.yaml --\nname: clerk\npermissions: {ask: [\"ServeAgent:agent://desk/flie\"]}\nskills: {file: {process: {command: [cat]}}}\n",
			"! [permission.unmatched] clerk/agent.yaml:2:21: /permissions/ask/0: the rule \"ServeAgent:agent://desk/flie\" matches no capability of the agent: nobody would be asked (`agentd fleet graph` shows who offers what)\n" + oneDoubt},
		"an objective for nothing": {"-- clerk/agent.yaml --\nname: clerk\nmonitoring: {objectives: {latencyMs: 500, capabilities: {file: {latencyMs: 60000}, flie: {latencyMs: 1}}}}\nskills: {file: {process: {command: [cat]}}}\n",
			"! [objective.unmatched] clerk/agent.yaml:2:84: /monitoring/objectives/capabilities/flie: agent \"clerk\" does not offer the capability \"flie\" (name one of its capabilities.yaml)\n" + oneDoubt},
		"a scope is not granted": {capabilities(`permissions: ["network:read"]`) + "-- clerk/agent.yaml --\nname: clerk\nscopes: [\"database:*\"]\nskills: {file: {process: {command: [cat]}}}\n",
			"! [scope.ungranted] clerk/capabilities.yaml:4:16: /capabilities/0: the capability \"file\" needs the scope \"network:read\", which agent \"clerk\" does not grant: every call to it is denied (add it to scopes in clerk/agent.yaml)\n" + oneDoubt},
		"a pattern that cannot be read": {capabilities(`callers: ["agent://` + strings.Repeat("x", 600) + `"]`),
			"✗ [permission.malformed] fleet.yaml:3:36: /agents/1: clerk/capabilities.yaml:4: policy: the pattern has 608 bytes, more than 512\n"},

		"an identity that cannot be checked": {"-- identities.yaml --\nversion: 1\nidentities:\n  - agent: agent://desk\n    auth: {provider: oidc, issuer: i, audience: a}\n",
			"✗ [auth.unsupported] identities.yaml:4:5: /identities/0/auth: agentd cannot check the provider oidc of agent://desk: no agent that exchanges messages with it starts (use hmac or nkey)\n"},

		"an environment without members": {"-- fleet.yaml --\nversion: 1\nname: office\nagents: [{id: desk, path: ./desk}, {id: clerk, path: ./clerk}]\nenvironments: {default: {}, prod: {peersRef: ./prod/peers.yaml}}\n-- prod/peers.yaml --\nversion: 1\npeers: []\n",
			"! [peers.unused] prod/peers.yaml:1:1: no agent of this fleet reads this peers file (name it as peersRef of an environment in fleet.yaml, or remove it)\n" + oneDoubt},
		"peers in a folder of no agent": {"-- config/rpc-peers.yaml --\nversion: 1\npeers: []\n-- .git/rpc-peers.yaml --\nx\n-- other/fleet.yaml --\nx\n-- other/rpc-peers.yaml --\nx\n",
			"! [peers.unused] config/rpc-peers.yaml:1:1: no agent of this fleet reads this peers file (name it as peersRef of an environment in fleet.yaml, or remove it)\n" + oneDoubt},

		"a wildcard": {taking(strings.Replace(nats, "agents.clerk.requests", `"agents.*"`, 1)),
			"✗ [transport.subject] clerk/capabilities.yaml:3:14: /transports/0: \"agents.*\" cannot be subscribed: a subject has no empty part, no white space and no wildcard (parts of letters, digits, - and _ between single dots, such as agents.clerk.requests)\n"},
		"the server's own subjects": {taking(nats + ", " + strings.Replace(nats, "agents.clerk", "$JS.API", 1)),
			"! [transport.subject] clerk/capabilities.yaml:3:87: /transports/1: \"$JS.API.requests\" belongs to the NATS server: requests there reach no agent (such as agents.clerk.requests)\n" + oneDoubt},
		"another subject than the peers file's": {taking(strings.Replace(nats, "agents.clerk", "office.clerk", 1)),
			"! [transport.mismatch] rpc-peers.yaml:4:18: /peers/0/transports/0: agent \"clerk\" takes no requests at agents.clerk.requests: calls this way find nobody (write office.clerk.requests)\n" + oneDoubt},
		"another kind than the peers file's": {taking("{kind: memory, topics: {requests: agents.clerk.requests}}"),
			"! [transport.mismatch] rpc-peers.yaml:4:18: /peers/0/transports/0: agent \"clerk\" takes no requests by nats: calls this way find nobody\n" + oneDoubt},
		"two agents at one subject": {"-- desk/capabilities.yaml --\nversion: 1\nagent: agent://desk\ntransports: [" + nats + "]\ncapabilities: [{name: greet}]\n-- desk/agent.yaml --\nname: desk\nskills: {greet: {process: {command: [cat]}}}\n",
			"! [transport.shared] clerk/capabilities.yaml:3:14: /transports/0: the agents \"desk\" and \"clerk\" both take requests at agents.clerk.requests, and get each other's (such as agents.clerk.requests)\n" + oneDoubt},
		"answers that would be requests": {"-- rpc-peers.yaml --\nversion: 1\npeers: [{agent: agent://clerk, transports: [" + nats + "]}, {agent: agent://archive.example, replyTopics: [archive.out, agents.>], transports: [" + strings.Replace(nats, "clerk", "archive", 1) + "]}]\n",
			"! [transport.replies] rpc-peers.yaml:2:120: /peers/1: replyTopics of agent://archive.example has \"agents.>\", and agent \"clerk\" takes requests at agents.clerk.requests: an answer there would be a request (list topics at which nobody but the peer listens)\n" + oneDoubt},
		"a kind that nobody speaks": {taking("{kind: kafka, brokers: [b], topics: {requests: r}}") + "-- rpc-peers.yaml --\nversion: 1\npeers: [{agent: agent://clerk, transports: [{kind: kafka, brokers: [b], topics: {requests: r}}]}]\n",
			"! [transport.unsupported] clerk/capabilities.yaml:3:14: /transports/0: agent \"clerk\" takes requests by kafka only, which agentd does not speak: it does not start (add one of kind nats or memory)\n" +
				"! [transport.unsupported] rpc-peers.yaml:2:45: /peers/0/transports/0: agent://clerk is reached by kafka only, which agentd does not speak: every call to it ends as EAGENTRPC_NO_TRANSPORT (add one of kind nats or memory)\n" + twoDoubts},
		"a kind beside others": {taking("{kind: kafka, brokers: [b], topics: {requests: r}}, " + nats),
			"· [transport.unsupported] clerk/capabilities.yaml:3:14: /transports/0: agent \"clerk\" takes requests by kafka too, which agentd does not speak: it uses the others\n" + clean},
		"an unknown kind": {taking("{kind: pigeon}"),
			"✗ [config.invalid] clerk/capabilities.yaml:3:21: /transports/0/kind: expected one of memory, nats, kafka, sqs, amqp, mqtt\n"},
		"durable without a broker": {clerkOf + "transports: [{kind: memory, topics: {requests: agents.clerk.requests}}]\ncapabilities: [{name: file, delivery: durable, rateLimit: {requests: 1, shared: true}}]\n-- rpc-peers.yaml --\nversion: 1\npeers: [{agent: agent://clerk, transports: [{kind: memory, topics: {requests: agents.clerk.requests}}]}]\n",
			"! [transport.lacks] clerk/capabilities.yaml:4:16: /capabilities/0: the capability \"file\" says `delivery: durable`, and agent \"clerk\" is not on NATS, which keeps requests (add a transport of kind nats)\n" +
				"! [transport.lacks] clerk/capabilities.yaml:4:16: /capabilities/0: the rate limit of \"file\" is shared, and agent \"clerk\" is not on NATS, where its replicas could count together (add a transport of kind nats)\n" + twoDoubts},

		"sharing without a broker": {"-- clerk/agent.yaml --\nname: clerk\nidempotency: {store: shared}\nskills: {file: {process: {command: [cat]}}}\n" + clerkOf + "transports: [{kind: memory, topics: {requests: agents.clerk.requests}}]\ncapabilities: [{name: file}]\n-- rpc-peers.yaml --\nversion: 1\npeers: [{agent: agent://clerk, transports: [{kind: memory, topics: {requests: agents.clerk.requests}}]}]\n",
			"! [transport.lacks] clerk/agent.yaml:2:1: /idempotency: agent \"clerk\" says `store: shared`, and is not on NATS, where its replicas could share it (add a transport of kind nats)\n" + oneDoubt},

		"what an agent uses": {"-- desk/agent.yaml --\nname: desk\ncapabilities: {history: {}, peers: {tools: [clerk__file]}}\n", clean},
		"a tool that a peer does not give": {"-- desk/agent.yaml --\nname: desk\ncapabilities: {peers: {tools: [clerk__other]}}\n",
			"✗ [capability.refused] desk/agent.yaml:2:32: /capabilities/peers/tools/0: the capability \"peers\" has no tool \"clerk__other\" (its tools: clerk__file; did you mean \"clerk__file\"?)\n"},

		"an action that leaves much to be guessed": {"-- clerk/h.sh --\necho 1\n-- clerk/agent.yaml --\nname: clerk\nskills: {file: {process: {command: [cat]}}}\n" +
			"layers: {capabilities: {actions: [{id: vague, handler: h.sh, permissions: [], parameters: {type: object, properties: {any: {}}}}]}}\n",
			"· [action.advice] clerk/agent.yaml:3:35: /layers/capabilities/actions/0: the action \"vague\": it has no description: people and models have to guess what it does\n" +
				"· [action.advice] clerk/agent.yaml:3:35: /layers/capabilities/actions/0: the action \"vague\": it does not say what it returns: callers cannot rely on a structure\n" +
				"· [action.advice] clerk/agent.yaml:3:35: /layers/capabilities/actions/0: the action \"vague\": it has no rate limit: the default of 600 in 1m0s is in force\n" +
				"· [action.advice] clerk/agent.yaml:3:35: /layers/capabilities/actions/0: the action \"vague\": the parameter any takes any value: no input is validated\n" + clean},
		"an action that leaves nothing": {"-- clerk/h.sh --\necho 1\n-- clerk/agent.yaml --\nname: clerk\nskills: {file: {process: {command: [cat]}}}\n" +
			"layers: {capabilities: {actions: [{id: clear, description: d, handler: h.sh, permissions: [], parameters: {a: {type: string}}, returns: {b: {type: string}}, rateLimit: {requests: 600, window: 1m}}]}}\n", clean},

		"no such program": {"-- clerk/agent.yaml --\nname: clerk\nskills: {file: {process: {command: [no-such-program]}}}\n",
			"! [skill.program] clerk/agent.yaml:2:10: /skills/file: the skill \"file\" of agent \"clerk\" runs \"no-such-program\", which is no program in $PATH on this machine\n" + oneDoubt},
		"a program that is a text": {"-- bin/file --\nx\n-- clerk/agent.yaml --\nname: clerk\nskills: {file: {process: {command: [./bin/file]}}}\n",
			"! [skill.program] clerk/agent.yaml:2:10: /skills/file: the skill \"file\" of agent \"clerk\" runs bin/file, which is no program on this machine\n" + oneDoubt},
		"no such folder": {"-- clerk/agent.yaml --\nname: clerk\nskills: {file: {process: {command: [cat], dir: ./work}}}\n",
			"! [skill.program] clerk/agent.yaml:2:10: /skills/file: the skill \"file\" of agent \"clerk\" runs in the folder work, which is not there\n" + oneDoubt},
		"a service's authority that is not there": {"-- clerk/agent.yaml --\nname: clerk\nskills: {file: {http: {url: 'https://files.example.com/', tls: {ca: ca.pem}}}}\n",
			"! [skill.program] clerk/agent.yaml:2:10: /skills/file: the skill \"file\" of agent \"clerk\" has its service proven by ca.pem, which is not there (the agent does not start without it)\n" + oneDoubt},
		"no such script": {"-- clerk/agent.yaml --\nname: clerk\nskills: {file: {process: {command: [sh, -e, file.sh, other.py], dir: clerk}}}\n",
			"! [skill.program] clerk/agent.yaml:2:10: /skills/file: the skill \"file\" of agent \"clerk\" runs the script clerk/file.sh, which is not there (relative paths begin at dir, which is the fleet's root unless the skill says otherwise)\n" + oneDoubt},
		"a script": {"-- clerk/file.sh --\ncat\n-- clerk/agent.yaml --\nname: clerk\nskills: {file: {process: {command: [sh, file.sh], dir: clerk}}}\n", clean},
		"no sandbox": {"-- clerk/agent.yaml --\nname: clerk\nskills: {file: {process: {command: [cat]}, sandbox: off}}\n",
			"! [sandbox.off] clerk/agent.yaml:2:44: /skills/file/sandbox: the skill \"file\" of agent \"clerk\" has no sandbox: it may read and change whatever the user of agentd may, the keys of agents too (grant what it needs with read, write and connect)\n" + oneDoubt},
		"no such user for a sandbox": {"-- clerk/agent.yaml --\nname: clerk\nskills: {file: {process: {command: [cat]}, sandbox: {user: no-such-user}}}\n",
			"! [sandbox.user] clerk/agent.yaml:2:54: /skills/file/sandbox/user: the skill \"file\" of agent \"clerk\" is to run as another user, and there is no user no-such-user on this host: the agent does not start here (make one, as with `useradd --system`, or name another)\n" + oneDoubt},
		"no such path for a sandbox": {"-- clerk/agent.yaml --\nname: clerk\nskills: {file: {process: {command: [cat]}, sandbox: {read: [rpc-peers.yaml], write: [out]}}}\n",
			"! [sandbox.path] clerk/agent.yaml:2:86: /skills/file/sandbox/write/0: the sandbox of the skill \"file\" of agent \"clerk\" grants out, which is not there: its calls fail\n" + oneDoubt},

		"instances": {"-- fleet.yaml --\nversion: 1\nname: office\nagents: [{id: desk, path: ./desk}, {id: clerk, path: ./clerk, deploy: {target: t, minInstances: 3, maxInstances: 2}}]\ndeploy: {targets: {t: {kind: k}}}\n",
			"! [bounds.contradict] fleet.yaml:3:72: /agents/1/deploy/target: agent \"clerk\" is to have at least 3 instances and at most 2\n" + oneDoubt},
		"longer than a call": {capabilities("timeoutMs: 3600000"),
			"! [bounds.contradict] clerk/capabilities.yaml:4:16: /capabilities/0: timeoutMs of \"file\" is 1h0m0s, and no call may take longer than 10m0s (use `delivery: durable` for longer work)\n" + oneDoubt},
		"more runs than requests": {capabilities("concurrency: 9") + "-- clerk/agent.yaml --\nname: clerk\nlimits: {maxInFlight: 8}\nskills: {file: {process: {command: [cat]}}}\n",
			"! [bounds.contradict] clerk/capabilities.yaml:4:16: /capabilities/0: concurrency of \"file\" is 9, and agent \"clerk\" serves at most 8 requests at once (raise limits.maxInFlight in agent.yaml, or lower concurrency)\n" + oneDoubt},
		"results are forgotten": {"-- clerk/agent.yaml --\nname: clerk\ndurable: {resultTtlMs: 3600000, ackWaitMs: 600000, maxDeliver: 7}\nskills: {file: {process: {command: [cat]}}}\n",
			"! [bounds.contradict] clerk/agent.yaml:2:1: /durable: results are kept for 1h0m0s, and a request may be delivered again for 1h10m0s: it could be served twice (make resultTtlMs longer than ackWaitMs times maxDeliver)\n" + oneDoubt},
		"no value passes": {capabilities("inputSchema: {type: object, properties: {n: {type: integer, minimum: 3, maximum: 2}}, required: [n]}"),
			"! [bounds.contradict] clerk/capabilities.yaml:4:29: /capabilities/0/inputSchema: no value passes the inputSchema of \"file\": every call to it fails (its demands contradict each other)\n" + oneDoubt},
		"retries that are not made": {capabilities("retryPolicy: {maxAttempts: 3}"),
			"! [retry.unsafe] clerk/capabilities.yaml:4:16: /capabilities/0: the retryPolicy of \"file\" has no effect but for calls with an idempotency key: it is not idempotent (say `idempotent: true` if repeating a call does no harm)\n" + oneDoubt},
		"retries that are": {capabilities("idempotent: true, retryPolicy: {maxAttempts: 3}"), clean},

		"a version without a contract": {"-- rpc-peers.yaml --\nversion: 1\npeers: [{agent: agent://archive, minSchemaVersion: '1', transports: [" + nats + "]}]\n",
			"✗ [version.unenforced] rpc-peers.yaml:2:9: /peers/0: minSchemaVersion of agent://archive cannot hold: no contract of it is known here, so calls to it are not checked (name the peer's file with the key capabilities)\n" +
				"· [peer.dangling] rpc-peers.yaml:2:9: /peers/0: the peer agent://archive is no agent of this fleet, and has no capabilities file: calls to it are not checked (name its file with the key capabilities)\n"},
		"a version that nobody checks": {atLeast("'1'") + capabilities("since: '1'") + "-- desk/agent.yaml --\nname: desk\ndrift: 'off'\n",
			"✗ [version.unenforced] rpc-peers.yaml:2:9: /peers/0: minSchemaVersion of agent://clerk cannot hold: agent \"desk\" says `drift: off`, and the drift gate is what checks it (remove one of both)\n"},
		"a version that refuses nothing": {atLeast("'1'") + capabilities("since: '1'") + "-- desk/agent.yaml --\nname: desk\ndrift: warn\n",
			"! [version.unenforced] rpc-peers.yaml:2:9: /peers/0: minSchemaVersion of agent://clerk refuses nothing: agent \"desk\" says `drift: warn` (say `drift: enforce`)\n" + oneDoubt},
		"a version that is not met": {atLeast("'1.10'") + capabilities("since: '1.9'"),
			"! [version.unmet] rpc-peers.yaml:2:9: /peers/0: agent \"desk\" asks for version 1.10 of agent://clerk or later, and \"file\" says since \"1.9\": every call to it is refused (raise its since, or lower minSchemaVersion)\n" + oneDoubt},
		"a version that is met": {atLeast("'1.9'") + capabilities("since: v1.10"), clean},
		"a version that is none": {atLeast("banana"),
			"✗ [config.invalid] rpc-peers.yaml:2:32: /peers/0/minSchemaVersion: \"banana\" is no version: nothing could be compared with it (up to four numbers, such as 1.2 or v1.2.0)\n"},

		"tenants that anybody may name": {tenants,
			"! [tenant.unproven] rpc-peers.yaml:4:5: /peers/1: the tenants of agent://desk bind nobody: no agent has an identity, so every caller of agent \"clerk\" may take that name (`agentd identity publish` gives each agent one)\n" + oneDoubt},
		"tenants that nobody can name": {tenants + identityOf("clerk"),
			"! [tenant.unproven] rpc-peers.yaml:4:5: /peers/1: agent://desk has no identity, and others have: agent \"clerk\" refuses each of its calls for a tenant (`agentd identity publish` gives each agent one)\n" + oneDoubt},
		"tenants of a caller that proves itself": {tenants + identityOf("desk"), clean},

		"keys without effect": {"-- desk/agent.yaml --\nname: desk\nmodel: m\nsecrets: {a: 1}\naudit: {export: x}\ntemperature: 1\n",
			"! [key.ignored] desk/agent.yaml:4:9: /audit/export: agentd does not act on the key \"audit.export\" (`agentd audit export` writes records for other systems)\n" +
				"! [key.ignored] desk/agent.yaml:3:1: /secrets: agentd does not act on the key \"secrets\" (a skill gets env, inheritEnv and the environment's envFiles)\n" +
				"· [key.ignored] desk/agent.yaml:2:1: /model: left to the reference runtime: model, temperature\n" + twoDoubts},

		"a foreign peer": {"-- rpc-peers.yaml --\nversion: 1\npeers: [{agent: agent://archive, transports: [" + nats + "]}]\n",
			"· [peer.dangling] rpc-peers.yaml:2:9: /peers/0: the peer agent://archive is no agent of this fleet, and has no capabilities file: calls to it are not checked (name its file with the key capabilities)\n" + clean},
		"a misspelt peer": {"-- rpc-peers.yaml --\nversion: 1\npeers: [{agent: agent://clrek, transports: [" + nats + "]}]\n",
			"! [peer.dangling] rpc-peers.yaml:2:9: /peers/0: the peer agent://clrek is no agent of this fleet, and has no capabilities file: calls to it are not checked (did you mean \"clerk\"?)\n" + oneDoubt},
	} {
		t.Run(name, func(t *testing.T) {
			if got := check(t, test.changes); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestValidateWithoutAFleet(t *testing.T) {
	if _, err := fleetlint.Validate(t.TempDir(), fleet.LoadOptions{}); err == nil {
		t.Error("a folder without a fleet validates")
	}
}

// A capability that there is none of is an error, with the nearest name.
func TestUnknownCapabilityToUse(t *testing.T) {
	got := check(t, "-- desk/agent.yaml --\nname: desk\ncapabilities: {histroy: {}}\n")
	if !strings.HasPrefix(got, "✗ [capability.refused] desk/agent.yaml:2:16: /capabilities/histroy: unknown capability \"histroy\"") || !strings.Contains(got, "did you mean \"history\"?") {
		t.Error(got)
	}
}
