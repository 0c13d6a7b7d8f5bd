package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// An operation is one path of the control API. Request and Response are types, <folder>.<type>, or
// [] before one; none, or any, stand for a body that has no type.
type operation struct {
	pattern, id, summary, request, response string
	query                                   []query
}

type query struct{ name, typ, meaning string }

// operations are those of the operator's socket.
func operations() []operation {
	const control = "daemon/control."
	return []operation{
		{"POST /v1/request", "request", "Calls a capability of a peer in the agent's name. With Accept: application/x-ndjson the response is a stream of lines: progress, and then the result.", "rpc.Request", "rpc.Result", nil},
		{"GET /v1/results/{id}", "awaitResult", "Waits for the answer to an asynchronous call; id is its correlation id.", "", "rpc.Result", []query{{"timeoutMs", "integer", "how long to wait, from 1 to an hour; required"}}},
		{"GET /v1/agent/status", "status", "The agent at a glance.", "", control + "Status", nil},
		{"GET /v1/agent/activity", "activity", "What the agent does: its calls by peer and capability, with latencies, and the round trip to its brokers. Two of them give rates.", "", control + "Activity", nil},
		{"GET /v1/agent/capabilities", "capabilities", "What the agent offers, as it publishes it.", "", "any", nil},
		{"GET /v1/agent/tools", "tools", "What the agent may use, with the tools in full.", "", "[]" + control + "ToolSet", nil},
		{"POST /v1/actions/run", "runAction", "Executes an action of the agent for its operator.", "action.Invocation", "action.Outcome", nil},
		{"POST /v1/peers/verify", "verifyPeers", "Asks peers what they serve now: those given, or all.", control + "verifyRequest", "[]" + control + "PeerStatus", nil},
		{"POST /v1/breakers/reset", "resetBreakers", "Closes circuit breakers, and lists those that were not closed, as they were.", control + "resetRequest", "[]" + control + "Breaker", nil},
		{"POST /v1/audit/redact", "redactAudit", "Erases the content of the records that match.", control + "redactRequest", control + "erasure", nil},
		{"POST /v1/audit/prune", "pruneAudit", "Removes the records from before a time.", control + "pruneRequest", control + "erasure", nil},
		{"POST /v1/audit/rotate-key", "rotateAuditKey", "Makes a new signing key of the audit log. The body is {}.", "any", control + "rotation", nil},
		{"POST /v1/audit/witnessed", "witnessed", "The checkpoint that a witness holds of a log.", control + "witnessedRequest", control + "witnessedAnswer", nil},
		{"GET /v1/approvals", "approvals", "The calls that wait for a person.", "", "[]" + control + "Approval", []query{{"payload", "string", "1 adds the payloads"}}},
		{"POST /v1/approvals/{id}", "decideApproval", "Decides about a call that waits.", control + "decision", "none", nil},
		{"GET /v1/dlq", "letters", "The dead letters, the oldest first, without their bodies.", "", "[]" + control + "Letter", nil},
		{"GET /v1/dlq/{number}", "letter", "A dead letter, with its body.", "", control + "Letter", nil},
		{"POST /v1/dlq/{number}/redrive", "redriveLetter", "Puts a dead letter back into the queue.", "", control + "Letter", nil},
		{"DELETE /v1/dlq/{number}", "dropLetter", "Removes a dead letter for good.", "", control + "Letter", nil},
		{"POST /v1/mcp/stdio", "mcpStdio", "Upgrades the connection to a session of the Model Context Protocol, for `agentd mcp`.", "", "none", []query{{"client", "string", "the client's name"}, {"names", "string", "full or bare"}, {"profile", "string", "the provider whose limits schemas are projected for"}}},
		{"POST /v1/mcp/listen", "mcpListen", "Serves MCP clients over HTTP for as long as the connection stays, for `agentd mcp --http`.", "any", "any", nil},
		{"GET /v1/openapi.json", "openapi", "This description.", "", "any", nil},
		{"GET /healthz", "healthz", "Whether the process answers.", "", "any", nil},
		{"GET /readyz", "readyz", "Whether the agent accepts calls: 200, or 503 with the reason.", "", "any", nil},
	}
}

// OpenAPI describes the control API. The sources must register the paths of this file and no
// others.
func OpenAPI(root string) ([]byte, error) {
	all := operations()
	registered, err := routes(filepath.Join(root, "daemon/control"))
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		if !slices.Contains(registered, o.pattern) {
			return nil, fmt.Errorf("openapi.go has %s, which the control API does not", o.pattern)
		}
		registered = slices.DeleteFunc(registered, func(r string) bool { return r == o.pattern })
	}
	if len(registered) > 0 {
		return nil, fmt.Errorf("the control API has %q, which openapi.go lacks", registered)
	}
	t := &types{root: root, packages: map[string]*sources{}, met: map[string]string{}}
	paths := ordered{}
	for _, o := range all {
		method, path, _ := strings.Cut(o.pattern, " ")
		described, err := o.describe(t, path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.pattern, err)
		}
		at := slices.IndexFunc(paths, func(m member) bool { return m.name == path })
		if at < 0 {
			paths.set(path, ordered{{strings.ToLower(method), described}})
			continue
		}
		paths[at].value = append(paths[at].value.(ordered), member{strings.ToLower(method), described})
	}
	fault, err := t.named("daemon/internal/callapi", "fault")
	if err != nil {
		return nil, err
	}
	return indented(ordered{
		{"openapi", "3.1.0"},
		{"info", ordered{
			{"title", "agentd control API"}, {"version", "1"},
			{"description", "The API of a running agent for its operator, over HTTP on the Unix socket that `agentd run` prints. The socket is the access control: only the agent's user can open it, and no skill can. Programs with a token may make calls and await their results over TCP, where control of agent.yaml says so, and nothing else. Fields are only ever added."},
		}},
		{"servers", []ordered{socketServer()}},
		{"paths", paths},
		{"components", ordered{
			{"schemas", t.components},
			{"securitySchemes", ordered{{"client", ordered{
				{"type", "http"}, {"scheme", "bearer"}, {"description", "The token of a client in control.clients of agent.yaml. By the Unix socket there is none."},
			}}}},
			{"responses", ordered{{"Fault", ordered{{"description", "The request was refused, or has failed."}, {"content", ordered{{"application/json", ordered{{"schema", fault}}}}}}}}},
		}},
	})
}

// socketServer is where the operator finds the API.
func socketServer() ordered {
	return ordered{{"url", "http://localhost"}, {"description", "by the Unix socket, such as curl --unix-socket $XDG_RUNTIME_DIR/agentd/<fleet>/<agent>.sock"}}
}

// clientServer is where clients find the part that is theirs.
func clientServer() ordered {
	return ordered{
		{"url", "{scheme}://{address}"}, {"description", "over TCP, for clients with a token: control of agent.yaml"},
		{"variables", ordered{
			{"scheme", ordered{{"enum", []string{"http", "https"}}, {"default", "http"}, {"description", "https where control has tls"}}},
			{"address", ordered{{"default", "127.0.0.1:7420"}, {"description", "control.listen"}}},
		}},
	}
}

// forClients reports whether clients may ask for an operation: package daemon/internal/clientapi
// serves these and no others.
func (o operation) forClients() bool { return o.id == "request" || o.id == "awaitResult" }

func (o operation) describe(t *types, path string) (ordered, error) {
	out := ordered{{"operationId", o.id}, {"summary", o.summary}}
	if o.forClients() {
		out.set("servers", []ordered{socketServer(), clientServer()})
		out.set("security", []ordered{{}, {{"client", []string{}}}})
	}
	var parameters []ordered
	for _, part := range strings.Split(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			parameters = append(parameters, ordered{{"name", strings.TrimSuffix(name, "}")}, {"in", "path"}, {"required", true}, {"schema", ordered{{"type", "string"}}}})
		}
	}
	for _, q := range o.query {
		parameters = append(parameters, ordered{{"name", q.name}, {"in", "query"}, {"description", q.meaning}, {"required", strings.HasSuffix(q.meaning, "required")}, {"schema", ordered{{"type", q.typ}}}})
	}
	if parameters != nil {
		out.set("parameters", parameters)
	}
	if o.request != "" {
		body, err := t.body(o.request)
		if err != nil {
			return nil, err
		}
		out.set("requestBody", ordered{{"required", true}, {"content", body}})
	}
	response := ordered{{"description", "What the summary says."}}
	if o.response != "none" {
		body, err := t.body(o.response)
		if err != nil {
			return nil, err
		}
		if o.id == "request" {
			line, err := t.named("daemon/internal/callapi", "streamLine")
			if err != nil {
				return nil, err
			}
			body.set("application/x-ndjson", ordered{{"schema", ordered{{"description", "Each line is one of these."}, line[0]}}})
		}
		response.set("content", body)
	}
	out.set("responses", ordered{{o.success(), response}, {"default", ordered{{"$ref", "#/components/responses/Fault"}}}})
	return out, nil
}

// success is the status of what went well.
func (o operation) success() string {
	if o.id == "mcpStdio" {
		return "101"
	}
	return "2XX"
}

func (t *types) body(typ string) (ordered, error) {
	schema := ordered{}
	if typ != "any" {
		name, list := strings.CutPrefix(typ, "[]")
		dot := strings.LastIndexByte(name, '.')
		var err error
		if schema, err = t.named(name[:dot], name[dot+1:]); err != nil {
			return nil, err
		}
		if list {
			schema = ordered{{"type", "array"}, {"items", schema}}
		}
	}
	return ordered{{"application/json", ordered{{"schema", schema}}}}, nil
}

// routes are the patterns that a package registers with its mux.
func routes(folder string) (patterns []string, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	constants := map[string]string{}
	var calls []*ast.CallExpr
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.ValueSpec:
				constants[x.Names[0].Name] = literal(x)
			case *ast.CallExpr:
				if f, ok := x.Fun.(*ast.SelectorExpr); ok && (f.Sel.Name == "HandleFunc" || f.Sel.Name == "Handle") {
					calls = append(calls, x)
				}
			}
			return true
		})
	}
	for _, call := range calls {
		patterns = append(patterns, pattern(call.Args[0], constants))
	}
	return patterns, nil
}

// pattern is the text of an argument that is a literal, a constant, or both in one.
func pattern(e ast.Expr, constants map[string]string) string {
	switch x := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(x.Value)
		if err == nil {
			return text
		}
	case *ast.Ident:
		return constants[x.Name]
	case *ast.BinaryExpr:
		return pattern(x.X, constants) + pattern(x.Y, constants)
	}
	return fmt.Sprintf("a %T", e)
}
