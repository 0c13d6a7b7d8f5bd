package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc"
)

// A reply is an HTTP response with its body read.
type reply struct {
	status int
	header http.Header
	body   string
}

// fault decodes the body of a response other than 200.
func (r reply) fault(t *testing.T) (code, message string) {
	t.Helper()
	var body struct {
		Error *struct{ Code, Message string }
	}
	dec := json.NewDecoder(strings.NewReader(r.body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&body); err != nil || body.Error == nil || body.Error.Message == "" {
		t.Fatalf("status %d: the body %q is not {error: {code, message}}: %v", r.status, r.body, err)
	}
	return body.Error.Code, body.Error.Message
}

// send makes one HTTP request over the socket, as a client in any language does.
func send(t *testing.T, s *control.Server, method, path, body string, header http.Header) reply {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", s.Path())
	}}}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://agentd"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header.Clone()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(text)}
}

// approvals holds calls in memory, in order.
type approvals struct {
	mu       sync.Mutex
	waiting  []control.Approval
	decided  map[string]control.Decision
	writeErr error // what recording a decision fails with
}

func (a *approvals) Waiting() []control.Approval {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.waiting)
}

func (a *approvals) Decide(ctx context.Context, id string, decision control.Decision) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := slices.IndexFunc(a.waiting, func(w control.Approval) bool { return w.ID == id })
	if at < 0 {
		return &control.NoApprovalError{ID: id}
	}
	if err := errors.Join(ctx.Err(), a.writeErr); err != nil {
		return err
	}
	a.waiting = slices.Delete(a.waiting, at, at+1)
	if a.decided == nil {
		a.decided = map[string]control.Decision{}
	}
	a.decided[id] = decision
	return nil
}

// queue holds dead letters in memory. Await returns once its context ends.
type queue struct {
	mu      sync.Mutex
	letters []control.Letter
	by      []string // who redrove or dropped
	waiting chan string
	ended   chan error
}

func (q *queue) Await(ctx context.Context, id string) *rpc.Result {
	if id == "answered" {
		return &rpc.Result{Status: rpc.StatusOK, CorrelationID: id, Response: json.RawMessage(`7`)}
	}
	if q.waiting != nil {
		q.waiting <- id
	}
	<-ctx.Done()
	if q.ended != nil {
		q.ended <- ctx.Err()
	}
	return &rpc.Result{Status: rpc.StatusTimeout, CorrelationID: id}
}

func (q *queue) Letters(context.Context) ([]control.Letter, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := slices.Clone(q.letters)
	for i := range list {
		list[i].Body = nil
	}
	return list, nil
}

func (q *queue) Letter(_ context.Context, number uint64) (control.Letter, error) {
	return q.take(number, "", false)
}

func (q *queue) Redrive(_ context.Context, number uint64, by string) (control.Letter, error) {
	return q.take(number, "redrive by "+by, true)
}

func (q *queue) Drop(_ context.Context, number uint64, by string) (control.Letter, error) {
	return q.take(number, "drop by "+by, true)
}

func (q *queue) take(number uint64, by string, remove bool) (control.Letter, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.IndexFunc(q.letters, func(l control.Letter) bool { return l.Number == number })
	if at < 0 {
		return control.Letter{}, fmt.Errorf("there is no dead letter %d", number)
	}
	letter := q.letters[at]
	if remove {
		q.letters, q.by = slices.Delete(q.letters, at, at+1), append(q.by, by)
	}
	return letter, nil
}

// witnesses answers as a function does.
type witnesses func(ctx context.Context, by envelope.Address, origin string) ([]byte, error)

func (w witnesses) Witnessed(ctx context.Context, by envelope.Address, origin string) ([]byte, error) {
	return w(ctx, by, origin)
}

// moment is a fixed time, as the API prints it.
var moment = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// whole is an agent with every part of the API.
func whole(t *testing.T) control.Agent {
	t.Helper()
	return control.Agent{
		Caller:       caller(func(_ context.Context, r rpc.Request) (*rpc.Result, error) { return ok(r), nil }),
		Capabilities: func() ([]byte, error) { return []byte(`{"capabilities_version":"1.0"}`), nil },
		Ready:        func() error { return nil },
		Warnings:     func() []string { return []string{"the disk is nearly full"} },
		Approvals: &approvals{waiting: []control.Approval{{
			ID: "a-1", Role: rpc.RoleCallee, Caller: "agent://b", Callee: "agent://a", Proven: true, Nonce: "n", PayloadSHA256: "5b1b", Signers: []control.Signer{{Name: "ann", Key: "SHA256:x"}},
			Peer: "agent://b", Capability: "pay", CorrelationID: "c-1", Rule: "policy.yaml:3", Since: moment, Until: moment.Add(time.Minute),
			Payload: json.RawMessage(`{"amount":1}`),
		}}},
		Witnesses: witnesses(func(_ context.Context, by envelope.Address, origin string) ([]byte, error) {
			return []byte(string(by) + " holds " + origin), nil
		}),
		Status: func() control.Status {
			return control.Status{Agent: "agent://a", Fleet: "f", Version: "1.0", PID: 7, Started: moment, Ready: true, Transports: []string{"nats"}}
		},
		VerifyPeers: func(_ context.Context, only []envelope.Address) []control.PeerStatus {
			list := []control.PeerStatus{}
			for _, peer := range only {
				list = append(list, control.PeerStatus{Peer: peer, Transport: "nats", Subject: "s", State: control.PeerReachable})
			}
			return list
		},
		Durable: &queue{letters: []control.Letter{
			{Number: 1, Time: moment, Reason: "expired", Attempts: 3, Bytes: 2, Body: json.RawMessage(`{}`)},
			{Number: 2, Time: moment, Reason: "malformed", Attempts: 1, Bytes: 2, Body: json.RawMessage(`[]`)},
			{Number: 3, Time: moment, Reason: "refused", Attempts: 1, Bytes: 2, Body: json.RawMessage(`[]`)},
		}},
		Audit: openLog(t, "s-1"),
		ResetBreakers: func(_ context.Context, peer envelope.Address, capability string) ([]control.Breaker, error) {
			all := []control.Breaker{}
			if peer == "agent://b" && capability == "x" {
				all = append(all, control.Breaker{
					Peer: peer, Capability: capability, State: policy.BreakerOpen, Since: moment, Until: moment.Add(time.Minute),
					Calls: 20, Failed: 19, Cause: "EAGENTRPC_TIMEOUT", Refused: 3, Opened: 1,
				})
			}
			return all, nil
		},
	}
}

// Every endpoint responds with the members that the package documents.
func TestGoodRequests(t *testing.T) {
	t.Parallel()
	_, s := serve(t, whole(t))
	const letter = `{"number":%d,"time":"2026-01-02T03:04:05Z","reason":"%s","attempts":%d,"bytes":2%s}`
	first := fmt.Sprintf(letter, 1, "expired", 3, `,"body":{}`)
	approval := `{"id":"a-1","role":"callee","caller":"agent://b","callee":"agent://a","proven":true,"peer":"agent://b","capability":"pay","correlationId":"c-1","rule":"policy.yaml:3",` +
		`"since":"2026-01-02T03:04:05Z","until":"2026-01-02T03:05:05Z","signers":[{"name":"ann","key":"SHA256:x"}],"nonce":"n","payloadSha256":"5b1b"`
	for _, test := range []struct{ name, method, path, body, want string }{
		{"health", "GET", "/healthz", "", `{"status":"ok"}`},
		{"ready", "GET", "/readyz", "", `{"status":"ready","warnings":["the disk is nearly full"]}`},
		{"call", "POST", "/v1/request", `{"to":"agent://b","capability":"x","payload":{"a":"<&>"}}`, `{"status":"ok","correlationId":"c-1","latencyMs":0,"response":{"a":"<&>"}}`},
		{"call in the words of the standard", "POST", "/v1/request", `{"to":"agent://b","capability_id":"x","parameters":{"a":"<&>"}}`,
			`{"status":"ok","correlationId":"c-1","latencyMs":0,"response":{"a":"<&>"},"success":true,"result":{"a":"<&>"},"execution_time_ms":0}`},
		{"capabilities", "GET", "/v1/agent/capabilities", "", `{"capabilities_version":"1.0"}`},
		{
			"status", "GET", "/v1/agent/status", "",
			`{"agent":"agent://a","fleet":"f","version":"1.0","pid":7,"started":"2026-01-02T03:04:05Z","ready":true,"transports":["nats"],"requests":0,"errors":0}`,
		},
		{"all peers", "POST", "/v1/peers/verify", `{}`, `[]`},
		{
			"one peer", "POST", "/v1/peers/verify", `{"peers":["agent://b"]}`,
			`[{"peer":"agent://b","transport":"nats","subject":"s","external":false,"status":"reachable"}]`,
		},
		{
			"peers, by address and by id", "POST", "/v1/peers/verify", `{"peers":["agent://c","b"]}`,
			`[{"peer":"agent://c","transport":"nats","subject":"s","external":false,"status":"reachable"},` +
				`{"peer":"agent://b","transport":"nats","subject":"s","external":false,"status":"reachable"}]`,
		},
		{
			"breakers", "POST", "/v1/breakers/reset", `{"peer":"agent://b","capability":"x"}`,
			`[{"peer":"agent://b","capability":"x","state":"open","since":"2026-01-02T03:04:05Z","until":"2026-01-02T03:05:05Z","calls":20,"failed":19,"cause":"EAGENTRPC_TIMEOUT","refused":3,"opened":1}]`,
		},
		{
			"breakers, by an id", "POST", "/v1/breakers/reset", `{"peer":"b","capability":"x"}`,
			`[{"peer":"agent://b","capability":"x","state":"open","since":"2026-01-02T03:04:05Z","until":"2026-01-02T03:05:05Z","calls":20,"failed":19,"cause":"EAGENTRPC_TIMEOUT","refused":3,"opened":1}]`,
		},
		{"no breakers", "POST", "/v1/breakers/reset", `{}`, `[]`},
		{"approvals", "GET", "/v1/approvals", "", `[` + approval + `}]`},
		{"approvals, without payloads", "GET", "/v1/approvals?payload=0", "", `[` + approval + `}]`},
		{"approvals, with payloads", "GET", "/v1/approvals?payload=1", "", `[` + approval + `,"payload":{"amount":1}}]`},
		{"decision", "POST", "/v1/approvals/a-1", `{"approve":true,"reason":"known"}`, `{"approve":true,"reason":"known"}`},
		{"no approvals left", "GET", "/v1/approvals", "", `[]`},
		{"result", "GET", "/v1/results/answered?timeoutMs=3600000", "", `{"status":"ok","correlationId":"answered","latencyMs":0,"response":7}`},
		{"result, too late", "GET", "/v1/results/slow?timeoutMs=1", "", `{"status":"timeout","correlationId":"slow","latencyMs":0}`},
		{"letters", "GET", "/v1/dlq", "", `[` + fmt.Sprintf(letter, 1, "expired", 3, "") + `,` + fmt.Sprintf(letter, 2, "malformed", 1, "") + `,` + fmt.Sprintf(letter, 3, "refused", 1, "") + `]`},
		{"letter", "GET", "/v1/dlq/1", "", first},
		{"redrive", "POST", "/v1/dlq/1/redrive", "", first},
		{"drop", "DELETE", "/v1/dlq/2", "", fmt.Sprintf(letter, 2, "malformed", 1, `,"body":[]`)},
		{"letters left", "GET", "/v1/dlq", "", `[` + fmt.Sprintf(letter, 3, "refused", 1, "") + `]`},
		{"witnessed", "POST", "/v1/audit/witnessed", `{"witness":"agent://w","origin":"o"}`, `{"checkpoint":"agent://w holds o"}`},
		{"redact", "POST", "/v1/audit/redact", `{"match":{"session":"s-1"},"reason":"r"}`, `{"records":[2],"count":1}`},
		{"prune", "POST", "/v1/audit/prune", `{"before":"2001-01-01T00:00:00Z","reason":"r"}`, `{"records":[],"count":0}`},
	} {
		got := send(t, s, test.method, test.path, test.body, nil)
		if got.status != http.StatusOK || strings.TrimSuffix(got.body, "\n") != test.want || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: status %d, %s\n%s\nwant\n%s", test.name, got.status, got.header, got.body, test.want)
		}
	}
}

// endpoints lists each path of the API with the methods that it has.
func endpoints() map[string][]string {
	get, post := []string{http.MethodGet, http.MethodHead}, []string{http.MethodPost}
	return map[string][]string{
		"/v1/request": post, "/v1/agent/capabilities": get, "/v1/agent/status": get, "/v1/peers/verify": post, "/v1/breakers/reset": post,
		"/v1/approvals": get, "/v1/approvals/x": post, "/v1/results/x": get, "/v1/dlq": get, "/v1/dlq/3": append([]string{http.MethodDelete}, get...),
		"/v1/dlq/3/redrive": post, "/v1/audit/redact": post, "/v1/audit/prune": post, "/v1/audit/rotate-key": post, "/v1/audit/witnessed": post,
		"/healthz": get, "/readyz": get,
	}
}

func TestWrongMethods(t *testing.T) {
	t.Parallel()
	a := whole(t)
	_, s := serve(t, a)
	for path, allowed := range endpoints() {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			if slices.Contains(allowed, method) {
				continue
			}
			got := send(t, s, method, path, `{}`, nil)
			names := strings.Split(got.header.Get("Allow"), ", ")
			slices.Sort(names)
			want := slices.Sorted(slices.Values(allowed))
			if got.status != http.StatusMethodNotAllowed || !slices.Equal(names, want) {
				t.Errorf("%s %s: status %d, Allow %v; want 405 and %v", method, path, got.status, names, want)
			}
		}
	}
	if letters, err := a.Durable.Letters(t.Context()); err != nil || len(letters) != 3 {
		t.Errorf("a method that does not exist changed the letters: %v, %v", letters, err)
	}
}

// A request of a skill's is refused, whatever it asks for: an older client makes it here.
func TestRequestsOfSkills(t *testing.T) {
	t.Parallel()
	_, s := serve(t, control.Agent{})
	for path, methods := range endpoints() {
		got := send(t, s, methods[0], path, `{}`, http.Header{"Agentd-Call": {"token"}})
		if got.status != http.StatusForbidden || methods[0] != http.MethodHead && !strings.Contains(got.body, "go to $AGENTD_URL") {
			t.Errorf("%s %s: status %d, %s", methods[0], path, got.status, got.body)
		}
	}
}

func TestUnknownPaths(t *testing.T) {
	t.Parallel()
	_, s := serve(t, whole(t))
	for _, path := range []string{
		"/", "/v1", "/v2/request", "/v1/requests", "/v1/request/", "/v1/approvals/a-1/x", "/v1/dlq/1/drop", "/v1/dlq/1/redrive/x",
		"/v1/audit", "/v1/audit/erase", "/v1/results", "/v1/results/", "/metrics", "/debug/pprof/", "/V1/request",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			got := send(t, s, method, path, `{}`, nil)
			if code, _ := got.fault(t); got.status != http.StatusNotFound || code != "not-found" || got.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %s: status %d, %s", method, path, got.status, got.body)
			}
		}
	}
}

// A body that is not exactly what an endpoint documents changes nothing and is
// rejected with the code of that endpoint.
func TestMalformedBodies(t *testing.T) {
	t.Parallel()
	log, waiting := openLog(t, "s-1"), whole(t).Approvals
	_, s := serve(t, control.Agent{
		Audit: log, Approvals: waiting,
		Caller: caller(func(context.Context, rpc.Request) (*rpc.Result, error) {
			t.Error("a call was made")
			return &rpc.Result{}, nil
		}),
		Witnesses: witnesses(func(context.Context, envelope.Address, string) ([]byte, error) {
			t.Error("a witness was asked")
			return nil, nil
		}),
		VerifyPeers: func(context.Context, []envelope.Address) []control.PeerStatus {
			t.Error("peers were asked")
			return nil
		},
		ResetBreakers: func(context.Context, envelope.Address, string) ([]control.Breaker, error) {
			t.Error("breakers were reset")
			return nil, nil
		},
	})
	invalid := rpc.CodeInvalidRequest.String()
	for path, code := range map[string]string{
		"/v1/request": invalid, "/v1/peers/verify": invalid, "/v1/breakers/reset": invalid, "/v1/approvals/a-1": invalid, "/v1/audit/redact": "invalid",
		"/v1/audit/prune": "invalid", "/v1/audit/rotate-key": "invalid", "/v1/audit/witnessed": "invalid",
	} {
		for name, body := range map[string]string{
			"nothing": "", "no JSON": "{", "an array": "[]", "a string": `"x"`, "unknown member": `{"unknown":1}`, "trailing text": `{} {}`,
			"no UTF-8": "{\"\xff\":1}",
		} {
			got := send(t, s, http.MethodPost, path, body, nil)
			if fault, _ := got.fault(t); got.status != http.StatusBadRequest || fault != code {
				t.Errorf("%s, %s: status %d, %s; want 400 and %s", path, name, got.status, got.body, code)
			}
		}
		if path == "/v1/request" { // whose body is decoded by package rpc, and is larger
			continue
		}
		for name, body := range map[string]string{
			"member given twice": `{"reason":"a","reason":"b"}`,
			"too large":          `{"reason":"` + strings.Repeat("x", 70<<10) + `"}`,
			"too deep":           strings.Repeat(`{"match":`, 20) + `1` + strings.Repeat(`}`, 20),
		} {
			got := send(t, s, http.MethodPost, path, body, nil)
			want := http.StatusBadRequest
			if name == "too large" {
				want = http.StatusRequestEntityTooLarge
			}
			if fault, _ := got.fault(t); got.status != want || fault != code {
				t.Errorf("%s, %s: status %d, %s; want %d and %s", path, name, got.status, got.body, want, code)
			}
		}
	}
	if last, err := log.Get(t.Context(), 2); err == nil {
		t.Errorf("a rejected request wrote record %+v", last)
	}
	if len(waiting.Waiting()) != 1 {
		t.Error("a rejected request decided a call")
	}
}

func TestMalformedParameters(t *testing.T) {
	t.Parallel()
	_, s := serve(t, whole(t))
	invalid, letter := rpc.CodeInvalidRequest.String(), "dead-letter"
	for _, test := range []struct {
		method, path string
		status       int
		code         string
	}{
		{"GET", "/v1/results/c", 400, invalid},
		{"GET", "/v1/results/c?timeoutMs=", 400, invalid},
		{"GET", "/v1/results/c?timeoutMs=soon", 400, invalid},
		{"GET", "/v1/results/c?timeoutMs=1.5", 400, invalid},
		{"GET", "/v1/results/c?timeoutMs=0", 400, invalid},
		{"GET", "/v1/results/c?timeoutMs=-1", 400, invalid},
		{"GET", "/v1/results/c?timeoutMs=3600001", 400, invalid},
		{"GET", "/v1/results/c?timeoutMs=99999999999999999999", 400, invalid},
		{"GET", "/v1/dlq/one", 400, letter},
		{"GET", "/v1/dlq/-1", 400, letter},
		{"GET", "/v1/dlq/18446744073709551616", 400, letter},
		{"POST", "/v1/dlq/0x1/redrive", 400, letter},
		{"DELETE", "/v1/dlq/1.0", 400, letter},
		{"GET", "/v1/dlq/9", 409, letter},
		{"POST", "/v1/dlq/9/redrive", 409, letter},
		{"DELETE", "/v1/dlq/9", 409, letter},
		{"POST", "/v1/approvals/a-2", 404, "no-approval"},
	} {
		got := send(t, s, test.method, test.path, `{"approve":true}`, nil)
		if code, _ := got.fault(t); got.status != test.status || code != test.code {
			t.Errorf("%s %s: status %d, %s; want %d and %s", test.method, test.path, got.status, got.body, test.status, test.code)
		}
	}
}

// An agent without a part of the API says so, and serves the others.
func TestMissingParts(t *testing.T) {
	t.Parallel()
	_, s := serve(t, control.Agent{Ready: func() error { return errors.New("draining") }})
	for _, test := range []struct {
		method, path, body string
		status             int
		code, message      string
	}{
		{"GET", "/readyz", "", 503, "not-ready", "draining"},
		{"GET", "/v1/agent/capabilities", "", 404, rpc.CodeNoCapability.String(), "only calls others"},
		{"GET", "/v1/agent/status", "", 404, rpc.CodeInvalidRequest.String(), "no status"},
		{"POST", "/v1/peers/verify", "{}", 404, rpc.CodeInvalidRequest.String(), "asks no peers"},
		{"POST", "/v1/breakers/reset", "{}", 404, rpc.CodeInvalidRequest.String(), "no breakers"},
		{"POST", "/v1/approvals/a-1", `{"approve":true}`, 404, "no-approval", "a-1"},
		{"GET", "/v1/results/c?timeoutMs=1", "", 404, rpc.CodeNeedsDurable.String(), "keeps no calls"},
		{"GET", "/v1/dlq", "", 404, "dead-letter", "keeps no calls"},
		{"GET", "/v1/dlq/1", "", 404, "dead-letter", "keeps no calls"},
		{"POST", "/v1/dlq/1/redrive", "", 404, "dead-letter", "keeps no calls"},
		{"DELETE", "/v1/dlq/1", "", 404, "dead-letter", "keeps no calls"},
		{"POST", "/v1/audit/redact", "{}", 404, "not-found", "no audit log"},
		{"POST", "/v1/audit/prune", "{}", 404, "not-found", "no audit log"},
		{"POST", "/v1/audit/rotate-key", "{}", 404, "not-found", "no audit log"},
		{"POST", "/v1/audit/witnessed", "{}", 404, "not-found", "no witness"},
	} {
		got := send(t, s, test.method, test.path, test.body, nil)
		code, message := got.fault(t)
		if got.status != test.status || code != test.code || !strings.Contains(message, test.message) {
			t.Errorf("%s %s: status %d, %s; want %d, %s and %q", test.method, test.path, got.status, got.body, test.status, test.code, test.message)
		}
	}
	if got := send(t, s, http.MethodGet, "/v1/approvals", "", nil); got.status != http.StatusOK || got.body != "[]\n" {
		t.Errorf("approvals: %d, %s", got.status, got.body)
	}
	if got := send(t, s, http.MethodGet, "/healthz", "", nil); got.status != http.StatusOK {
		t.Errorf("a process that lives: %d, %s", got.status, got.body)
	}
}

// keeper fails every change of an audit log.
type keeper struct{ err error }

func (k keeper) Redact(context.Context, auditchain.Filter, string) (auditchain.Erasure, error) {
	return auditchain.Erasure{}, k.err
}

func (k keeper) Prune(context.Context, time.Time, string) (auditchain.Erasure, error) {
	return auditchain.Erasure{}, k.err
}

func (k keeper) RotateKey(context.Context) (string, error) { return "", k.err }

// The status separates what the client can mend from what the operator must.
func TestFailedAuditChanges(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]struct {
		status int
		code   string
	}{
		&auditchain.Error{Code: auditchain.CodeInvalid, Msg: "m"}:               {400, "invalid"},
		&auditchain.Error{Code: auditchain.CodeClosed, Msg: "m"}:                {503, "closed"},
		&auditchain.Error{Code: auditchain.CodeFull, Msg: "m"}:                  {500, "disk-full"},
		&auditchain.Error{Code: auditchain.CodeTampered, Msg: "m"}:              {500, "tampered"},
		fmt.Errorf("wrapped: %w", &auditchain.Error{Code: auditchain.CodeBusy}): {500, "busy"},
		errors.New("foreign"): {500, "io"},
	} {
		c, _ := serve(t, control.Agent{Audit: keeper{err}})
		_, redact := c.Redact(t.Context(), auditchain.Filter{Session: "s"}, "r")
		_, prune := c.Prune(t.Context(), moment, "r")
		_, rotate := c.RotateKey(t.Context())
		for _, got := range []error{redact, prune, rotate} {
			refused, ok := errors.AsType[*control.RefusedError](got)
			if !ok || refused.HTTPStatus != want.status || refused.Code != want.code || refused.Message != err.Error() {
				t.Errorf("%v: got %v, want %d and %s", err, got, want.status, want.code)
			}
		}
	}
}

func TestFailedParts(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	waiting := whole(t).Approvals.(*approvals)
	waiting.writeErr = broken
	c, _ := serve(t, control.Agent{
		Capabilities: func() ([]byte, error) { return nil, broken },
		Approvals:    waiting,
		Witnesses:    witnesses(func(context.Context, envelope.Address, string) ([]byte, error) { return nil, broken }),
	})
	_, capabilities := c.Capabilities(t.Context())
	_, witnessed := c.Witnessed(t.Context(), "agent://w", "o")
	for _, test := range []struct {
		err    error
		status int
		code   string
	}{
		{capabilities, 500, rpc.CodeInternal.String()},
		{witnessed, 502, "io"},
		{c.Decide(t.Context(), "a-1", control.Decision{Approve: true}), 500, rpc.CodeAuditFailed.String()},
	} {
		refused, ok := errors.AsType[*control.RefusedError](test.err)
		if !ok || refused.HTTPStatus != test.status || refused.Code != test.code || !strings.Contains(refused.Message, "broken") {
			t.Errorf("got %v, want %d and %s", test.err, test.status, test.code)
		}
	}
}

// A decision is attributed to the user that the kernel reports, whatever the
// client claims, and its reason is bounded.
func TestDecisions(t *testing.T) {
	t.Parallel()
	waiting := &approvals{waiting: []control.Approval{{ID: "a"}, {ID: "b"}, {ID: "c"}}}
	c, s := serve(t, control.Agent{Approvals: waiting})
	if err := c.Decide(t.Context(), "a", control.Decision{Approve: true, Reason: strings.Repeat("x", 2048)}); err != nil {
		t.Error(err)
	}
	if err := c.Decide(t.Context(), "b", control.Decision{}); err != nil {
		t.Error(err)
	}
	err := c.Decide(t.Context(), "c", control.Decision{Approve: true, Reason: strings.Repeat("x", 2049)})
	if refused, ok := errors.AsType[*control.RefusedError](err); !ok || refused.HTTPStatus != http.StatusBadRequest || !strings.Contains(refused.Message, "2048") {
		t.Errorf("a longer reason: %v", err)
	}
	if got := send(t, s, http.MethodPost, "/v1/approvals/c", `{"approve":true,"by":"root"}`, nil); got.status != http.StatusBadRequest {
		t.Errorf("a client that names who decides: %d, %s", got.status, got.body)
	}
	missing, ok := errors.AsType[*control.NoApprovalError](c.Decide(t.Context(), "a", control.Decision{}))
	if !ok || missing.ID != "a" || !strings.Contains(missing.Error(), `"a"`) {
		t.Errorf("a second decision: %v", missing)
	}
	user := fmt.Sprintf("uid:%d", os.Getuid())
	if a, b := waiting.decided["a"], waiting.decided["b"]; !a.Approve || b.Approve || len(a.Reason) != 2048 || !strings.Contains(a.By, user) || a.By != b.By {
		t.Errorf("decided %+v", waiting.decided)
	}
	left, err := c.Approvals(t.Context(), false)
	if err != nil || len(left) != 1 || left[0].ID != "c" {
		t.Errorf("still waiting: %+v, %v", left, err)
	}
}

// The API describes itself, to whoever may use it.
func TestOpenAPI(t *testing.T) {
	recorder := httptest.NewRecorder()
	control.NewHandler(control.Agent{}).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/v1/openapi.json", nil))
	var description struct {
		OpenAPI string                    `json:"openapi"`
		Paths   map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal(recorder.Body.Bytes(), &description); err != nil || recorder.Code != http.StatusOK || recorder.Header().Get("Content-Type") != "application/json" ||
		description.OpenAPI != "3.1.0" || description.Paths["/v1/request"]["post"] == nil {
		t.Errorf("%d %v: %+v", recorder.Code, err, description)
	}
}
