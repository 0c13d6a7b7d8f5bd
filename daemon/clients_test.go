package daemon_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/logtest"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/rpc"
)

// Tokens of clients, each a different one of 256 bits.
var (
	batchToken = strings.Repeat("0123456789abcdef", 4)
	otherToken = strings.Repeat("fedcba9876543210", 4)
)

// withClients is a fleet whose caller serves clients of its control API.
func withClients(t *testing.T, control, permissions string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	for name, token := range map[string]string{"batch": batchToken, "other": otherToken} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := files()
	all["caller/agent.yaml"] = "name: caller\nlimits: {maxPayloadBytes: 4096}\ncontrol:\n  listen: 127.0.0.1:0\n" + control +
		"  clients:\n    - {name: batch, token: 'file:" + dir + "/batch', tenants: [default, acme]}\n    - {name: other, token: 'file:" + dir + "/other'}\n" + permissions
	return all
}

// clientAsks makes one request of a client, and returns the status and the body of the response.
func clientAsks(t *testing.T, d *daemon.Daemon, method, path, token, body string, header ...string) (int, string) {
	t.Helper()
	urls := d.Status().ControlServers
	if len(urls) != 1 {
		t.Fatalf("the control API is served at %v", urls)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, urls[0]+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Add(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

const clientCall = `{"to":"callee","capability":"go","payload":{"n":1},"idempotencyKey":"k"}`

// A client calls in the agent's name as the operator's socket does, with progress, by its own
// permissions, limits and records.
func TestClients(t *testing.T) {
	t.Parallel()
	all := withClients(t, "", "permissions: {allow: ['RequestAgent:agent://callee/*', 'CLIENT:batch/agent://callee/go']}\n")
	all["callee/agent.yaml"] = strings.Replace(all["callee/agent.yaml"], "name: callee\n", "name: callee\ntenants: [default, acme]\n", 1)
	all["callee/capabilities.yaml"] = strings.Replace(all["callee/capabilities.yaml"], "  - name: go\n", "  - name: go\n    progress: true\n", 1)
	cfg := load(t, all)
	keys := make(chan string, 16)
	cfg.Handlers = handle(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		keys <- inv.IdempotencyKey
		if inv.WantsProgress() {
			if err := rpc.Progress(ctx, json.RawMessage(`"half"`)); err != nil {
				return nil, err
			}
		}
		return inv.Payload, nil
	})
	f := startFleet(t, cfg)
	d, _ := f.Daemon("caller")
	status, text := clientAsks(t, d, "POST", "/v1/request", batchToken, clientCall)
	var result rpc.Result
	if err := json.Unmarshal([]byte(text), &result); err != nil || status != http.StatusOK || string(result.Response) != `{"n":1}` {
		t.Fatalf("%d, %s", status, text)
	}
	if key := <-keys; key != "CLIENT:batch/k" {
		t.Errorf("the callee got the key %q", key)
	}
	if status, text := clientAsks(t, d, "POST", "/v1/request", batchToken, clientCall, "Accept", "application/x-ndjson"); status != http.StatusOK ||
		strings.Count(text, "\n") != 1 && !strings.HasPrefix(text, `{"progress":`) || !strings.Contains(text, `"status":"ok"`) {
		t.Errorf("with progress: %d, %s", status, text)
	}
	for name, test := range map[string]struct {
		token, body string
		status      int
		has         string
	}{
		"what rules do not give a client":        {batchToken, `{"to":"callee","capability":"cat"}`, 200, `EAGENTRPC_DENIED`},
		"another client, which no rule allows":   {otherToken, clientCall, 200, `EAGENTRPC_DENIED`},
		"a payload that violates the contract":   {batchToken, `{"to":"callee","capability":"go","payload":{}}`, 200, `"status":"schema-violation"`},
		"a payload that is too large":            {batchToken, `{"to":"callee","capability":"go","payload":{"n":1,"s":"` + strings.Repeat("x", 5000) + `"}}`, 200, `EAGENTRPC_PAYLOAD_TOO_LARGE`},
		"a tenant of its own":                    {batchToken, `{"to":"callee","capability":"go","payload":{"n":2},"tenantId":"acme"}`, 200, `"status":"ok"`},
		"a tenant of others":                     {batchToken, `{"to":"callee","capability":"go","payload":{"n":2},"tenantId":"globex"}`, 403, `EAGENTRPC_DENIED`},
		"the tenant that stands for none":        {batchToken, `{"to":"callee","capability":"go","payload":{"n":2},"tenantId":"default"}`, 403, `EAGENTRPC_DENIED`},
		"a tenant, of a client that lists none":  {otherToken, `{"to":"callee","capability":"go","payload":{"n":2},"tenantId":"acme"}`, 403, `EAGENTRPC_DENIED`},
		"a call that is none":                    {batchToken, `{"to":"callee"`, 400, `EAGENTRPC_INVALID_REQUEST`},
		"an origin of its own making":            {batchToken, `{"to":"callee","capability":"go","origin":"CLIENT:other"}`, 400, `EAGENTRPC_INVALID_REQUEST`},
		"a body that is longer than any payload": {batchToken, strings.Repeat(" ", 200_000) + clientCall, 413, `EAGENTRPC_PAYLOAD_TOO_LARGE`},
	} {
		if status, text := clientAsks(t, d, "POST", "/v1/request", test.token, test.body); status != test.status || !strings.Contains(text, test.has) {
			t.Errorf("%s: %d, %s", name, status, text)
		}
	}
	stop(t, f)
	var calls, denied int
	for _, e := range records(t, cfg, "caller") {
		switch {
		case e.Kind == auditchain.KindRPCCall && strings.Contains(string(e.Body), `"origin":"CLIENT:batch"`):
			calls++
		case e.Kind == auditchain.KindPermissionDenied && strings.Contains(string(e.Body), `"target":"CLIENT:`):
			denied++
		}
	}
	if calls == 0 || denied != 5 {
		t.Errorf("%d records of calls and %d of refusals name the client", calls, denied)
	}
}

// Nobody gets in without the token of a client, by a page of a browser or another name of the host,
// and no client gets what is an operator's.
func TestClientsAttacked(t *testing.T) {
	t.Parallel()
	cfg := load(t, withClients(t, "", ""))
	cfg.Handlers = handle(echo)
	log := &logtest.Lines{}
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	f := startFleet(t, cfg)
	defer stop(t, f)
	d, _ := f.Daemon("caller")
	for name, test := range map[string]struct {
		token  string
		header []string
		status int
		code   string
	}{
		"no token":                 {"", nil, 401, "unauthorized"},
		"an empty token":           {" ", nil, 401, "unauthorized"},
		"a wrong token":            {strings.Repeat("a", 64), nil, 401, "unauthorized"},
		"a part of a token":        {batchToken[:63], nil, 401, "unauthorized"},
		"two tokens":               {batchToken, []string{"Authorization", "Bearer " + otherToken}, 403, "forbidden"},
		"a page of the web":        {batchToken, []string{"Origin", "https://evil.example"}, 403, "forbidden"},
		"a page without origin":    {batchToken, []string{"Origin", "null"}, 403, "forbidden"},
		"a page, as browsers say":  {batchToken, []string{"Sec-Fetch-Site", "same-origin"}, 403, "forbidden"},
		"a rebound name":           {batchToken, []string{"Host", "evil.example"}, 403, "forbidden"},
		"a rebound name, no token": {"", []string{"Host", "evil.example"}, 403, "forbidden"},
		"the token of a call":      {batchToken, []string{"Agentd-Call", "x"}, 403, "EAGENTRPC_INVALID_REQUEST"},
	} {
		if status, text := clientAsks(t, d, "POST", "/v1/request", test.token, clientCall, test.header...); status != test.status || !strings.Contains(text, `"code":"`+test.code+`"`) {
			t.Errorf("%s: %d, %s", name, status, text)
		}
	}
	if status, text := clientAsks(t, d, "OPTIONS", "/v1/request", "", "", "Origin", "https://evil.example", "Access-Control-Request-Method", "POST"); status != 403 {
		t.Errorf("a preflight: %d, %s", status, text)
	}
	for _, verb := range []string{
		"GET /v1/agent/status", "GET /v1/agent/capabilities", "GET /v1/agent/tools", "POST /v1/actions/run", "POST /v1/peers/verify", "POST /v1/breakers/reset",
		"POST /v1/audit/redact", "POST /v1/audit/prune", "POST /v1/audit/rotate-key", "POST /v1/audit/witnessed", "GET /v1/approvals", "POST /v1/approvals/x",
		"GET /v1/dlq", "POST /v1/dlq/x/retry", "POST /v1/agent/progress", "POST /mcp", "POST /v1/mcp/stdio", "GET /healthz", "GET /readyz", "GET /v1/request", "GET /v1/results/",
		"GET /v1/results/../agent/status", "GET //v1/agent/status", "DELETE /v1/results/x", "CONNECT /v1/request",
	} {
		method, path, _ := strings.Cut(verb, " ")
		if status, text := clientAsks(t, d, method, path, batchToken, "{}"); status != 403 && status != 400 || strings.Contains(text, `"status"`) {
			t.Errorf("%s: %d, %s", verb, status, text)
		}
	}
	if text := log.String(); !strings.Contains(text, "a client of the control API asks for what only an operator may") || !strings.Contains(text, "it is no client's") ||
		strings.Contains(text, batchToken) {
		t.Errorf("the log has\n%s", text)
	}
	const misused, most = "asks for what only an operator may", 7 // the 1st, the 2nd, the 4th, …
	before := strings.Count(log.String(), misused)
	for range 100 {
		clientAsks(t, d, "GET", "/v1/approvals", batchToken, "")
	}
	if n := strings.Count(log.String(), misused) - before; n > most {
		t.Errorf("100 requests have %d lines in the log, and %d are enough", n, most)
	}

	// What never ends is cut off, and keeps nobody else from being served.
	for name, send := range map[string]func(net.Conn) error{
		"giant headers": func(c net.Conn) error {
			_, err := fmt.Fprintf(c, "POST /v1/request HTTP/1.1\r\nHost: 127.0.0.1\r\nX: %s\r\n\r\n", strings.Repeat("x", 64<<10))
			return err
		},
		"a giant body of a stranger": func(c net.Conn) error {
			_, err := io.WriteString(c, "POST /v1/request HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000000000\r\n\r\n")
			for part := bytes.Repeat([]byte("x"), 64<<10); err == nil; {
				_, err = c.Write(part)
			}
			return err
		},
		"a giant body of a client": func(c net.Conn) error {
			_, err := fmt.Fprintf(c, "POST /v1/request HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nTransfer-Encoding: chunked\r\n\r\n", batchToken)
			for part := []byte("10000\r\n" + strings.Repeat(" ", 64<<10) + "\r\n"); err == nil; {
				_, err = c.Write(part)
			}
			return err
		},
		"a body of a stranger that never comes": func(c net.Conn) error {
			_, err := io.WriteString(c, "POST /v1/request HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n")
			return err
		},
		"a body of a client that never comes": func(c net.Conn) error {
			_, err := fmt.Fprintf(c, "POST /v1/approvals/x HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Length: 10\r\n\r\n", batchToken)
			return err
		},
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(d.Status().ControlServers[0], "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		_ = send(conn) // it is cut off somewhere
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: nobody has ended it", name)
		}
		conn.Close()
	}
	if status, text := clientAsks(t, d, "POST", "/v1/request", batchToken, clientCall); status != http.StatusOK || !strings.Contains(text, `"status":"ok"`) {
		t.Errorf("after all that: %d, %s", status, text)
	}
}

// The result of an asynchronous call is its client's, also after a restart. To another client there
// is no such call.
func TestClientsAwaitTheirOwn(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, "jetstream {}")
	all := durableFiles(server.URL())
	all["caller/agent.yaml"] = withClients(t, "", "")["caller/agent.yaml"]
	cfg := load(t, all)
	release := make(chan struct{})
	cfg.Handlers = handle(echoAfter(release))
	startAgent(t, cfg, "callee")
	d, err := daemon.Start(t.Context(), cfg, "caller")
	if err != nil {
		t.Fatal(err)
	}
	status, text := clientAsks(t, d, "POST", "/v1/request", batchToken, `{"to":"callee","capability":"go","payload":{"n":1},"mode":"async","tenantId":"","timeoutMs":60000}`)
	var accepted rpc.Result
	if err := json.Unmarshal([]byte(text), &accepted); err != nil || status != http.StatusOK || accepted.Error != nil || accepted.CorrelationID == "" {
		t.Fatalf("%d, %s", status, text)
	}
	path, unknown := "/v1/results/"+accepted.CorrelationID+"?timeoutMs=", "00000000-0000-7000-8000-000000000000"
	judge := func() {
		t.Helper()
		_, foreign := clientAsks(t, d, "GET", path+"60000", otherToken, "")
		_, none := clientAsks(t, d, "GET", "/v1/results/"+unknown+"?timeoutMs=60000", otherToken, "")
		if !strings.Contains(foreign, "no asynchronous call") || strings.ReplaceAll(foreign, accepted.CorrelationID, unknown) != none {
			t.Errorf("that of another client: %s, and one that never was: %s", foreign, none)
		}
	}
	judge()
	if _, text := clientAsks(t, d, "GET", path+"1", batchToken, ""); !strings.Contains(text, "EAGENTRPC_TIMEOUT") {
		t.Errorf("a wait of a millisecond: %s", text)
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(release)
	d = startAgent(t, cfg, "caller")
	judge()
	if _, text := clientAsks(t, d, "GET", path+"60000", batchToken, ""); !strings.Contains(text, `"response":{"n":1}`) {
		t.Errorf("its own, after a restart: %s", text)
	}
}

// Limits of a client hold for it alone, and a reload takes its token, its limits and the server
// away.
func TestClientsReload(t *testing.T) {
	t.Parallel()
	all := withClients(t, "", "")
	all["caller/agent.yaml"] = strings.Replace(all["caller/agent.yaml"], "tenants: [default, acme]}", "rateLimit: {requests: 1, period: 1h}}", 1)
	if !strings.Contains(all["caller/agent.yaml"], "rateLimit") {
		t.Fatal("no rate limit")
	}
	cfg := load(t, all)
	release, begun := make(chan struct{}), make(chan struct{}, 2)
	cfg.Handlers = handle(func(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
		begun <- struct{}{}
		return echoAfter(release)(ctx, inv)
	})
	f := startFleet(t, cfg)
	defer stop(t, f)
	d, _ := f.Daemon("caller")
	running := make(chan int, 1)
	go func() {
		status, _ := clientAsks(t, d, "POST", "/v1/request", batchToken, clientCall)
		running <- status
	}()
	select {
	case <-begun: // it has passed the limit of the rate, and the next one will not
	case status := <-running:
		t.Fatalf("the first call has ended: %d", status)
	}
	if c := d.Status().ControlClients; len(c) != 1 || c[0].Client != "batch" || c[0].Pending != 1 {
		t.Errorf("while a call runs: %+v", c)
	}
	if status, text := clientAsks(t, d, "POST", "/v1/request", batchToken, clientCall); status != http.StatusTooManyRequests || !strings.Contains(text, "EAGENTRPC_RATE_LIMITED") {
		t.Errorf("over its limit: %d, %s", status, text)
	}
	rewrite(t, cfg, "caller/agent.yaml", strings.Replace(all["caller/agent.yaml"], "    - {name: other", "    - {name: third", 1))
	at := d.Status().ControlServers[0]
	if err := d.Reload(); err != nil {
		t.Fatal(err)
	}
	if now := d.Status().ControlServers; len(now) != 1 || now[0] != at {
		t.Errorf("served at %v, and was at %s", now, at)
	}
	close(release)
	if status := <-running; status != http.StatusOK {
		t.Errorf("a call that ran during the reload: %d", status)
	}
	if status, text := clientAsks(t, d, "POST", "/v1/request", otherToken, clientCall); status != http.StatusOK || !strings.Contains(text, `"status":"ok"`) {
		t.Errorf("the token of the third client, which was the other's: %d, %s", status, text)
	}
	rewrite(t, cfg, "caller/agent.yaml", strings.Replace(all["caller/agent.yaml"], "file:", "file:/nowhere", 1))
	if err := d.Reload(); err == nil || !strings.Contains(err.Error(), "the token of the client batch") {
		t.Errorf("without a token: %v", err)
	}
	rewrite(t, cfg, "caller/agent.yaml", "name: caller\n")
	if err := d.Reload(); err != nil {
		t.Fatal(err)
	}
	if urls := d.Status().ControlServers; urls != nil {
		t.Errorf("still served at %v", urls)
	}
	eventually.Holds(t, "the port is closed", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(at, "http://"))
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}

// A client with as many calls as it may have is told when to come again; another is served.
func TestClientsPending(t *testing.T) {
	t.Parallel()
	cfg := load(t, withClients(t, "  maxPending: 1\n", ""))
	release := make(chan struct{})
	cfg.Handlers = handle(echoAfter(release))
	f := startFleet(t, cfg)
	defer stop(t, f)
	d, _ := f.Daemon("caller")
	statuses := make(chan int, 2)
	for i, token := range []string{batchToken, otherToken} {
		go func() {
			status, _ := clientAsks(t, d, "POST", "/v1/request", token, clientCall)
			statuses <- status
		}()
		eventually.Holds(t, "the call runs", func() bool { return len(d.Status().ControlClients) == i+1 })
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.Status().ControlServers[0]+"/v1/request", strings.NewReader(clientCall))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+batchToken)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("one call too many: %s, %v", resp.Status, resp.Header)
	}
	close(release)
	for range 2 {
		if status := <-statuses; status != http.StatusOK {
			t.Errorf("a call that ran: %d", status)
		}
	}
}

// With a certificate the API is served by TLS alone.
func TestClientsByTLS(t *testing.T) {
	t.Parallel()
	model := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate
	defer model.Close()
	pair := model.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, "key.pem": {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg := load(t, withClients(t, "  tls: {cert: "+dir+"/cert.pem, key: "+dir+"/key.pem}\n", ""))
	cfg.Handlers = handle(echo)
	f := startFleet(t, cfg)
	defer stop(t, f)
	d, _ := f.Daemon("caller")
	for scheme, want := range map[string]int{"https": http.StatusOK, "http": http.StatusBadRequest} {
		_, host, _ := strings.Cut(d.Status().ControlServers[0], "://")
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, scheme+"://"+host+"/v1/request", strings.NewReader(clientCall))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+batchToken)
		resp, err := model.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != want {
			t.Errorf("%s: %d, %s, %v", scheme, resp.StatusCode, text, err)
		}
	}
	if url := d.Status().ControlServers[0]; !strings.HasPrefix(url, "https://127.0.0.1:") {
		t.Errorf("served at %s", url)
	}
}
