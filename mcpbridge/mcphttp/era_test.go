package mcphttp_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// bearerTransport adds a token, as the library's client does with a token of OAuth.
type bearerTransport string

func (b bearerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func connect(t *testing.T, e *endpoint, token, version string) *mcp.ClientSession {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: e.URL + "/mcp", HTTPClient: &http.Client{Transport: bearerTransport(token)}},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// A client of either era gets its own server at the same URL.
func TestBothErasOnOnePath(t *testing.T) {
	e := serve(t, nil)
	for _, version := range []string{"", legacy, modern} {
		for client, token := range map[string]string{"desk": deskToken, "other": otherToken} {
			session := connect(t, e, token, version)
			tools, err := session.ListTools(t.Context(), nil)
			if err != nil || len(tools.Tools) < 5 {
				t.Fatal(version, client, err)
			}
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "whoami"})
			if err != nil || result.Content[0].(*mcp.TextContent).Text != client {
				t.Errorf("%s %s: %v, %v", version, client, err, result)
			}
		}
	}
}

// What headers and body say of a message has to agree, in the codes of the specification.
func TestHeadersAndBodyAgree(t *testing.T) {
	e := serve(t, nil)
	with := func(change func(*request)) request {
		r := modernCall(deskToken, "echo", `{}`)
		change(&r)
		return r
	}
	set := func(name string, values ...string) func(*request) {
		return func(r *request) {
			if r.header[name] = values; values == nil {
				delete(r.header, name)
			}
		}
	}
	coded := func(name string) string { return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(name)) + "?=" }
	for name, row := range map[string]struct {
		r      request
		status int
		part   string
	}{
		"agree":                    {with(func(*request) {}), 200, `"content"`},
		"name in Base64":           {with(set("Mcp-Name", coded("echo"))), 200, `"content"`},
		"another name in Base64":   {with(set("Mcp-Name", coded("fail"))), 400, "-32020"},
		"no Base64":                {with(set("Mcp-Name", "=?base64?%?=")), 400, "-32020"},
		"no version":               {with(set("Mcp-Protocol-Version")), 400, "-32020"},
		"version of the other era": {with(set("Mcp-Protocol-Version", legacy)), 400, "-32020"},
		"version to come":          {with(set("Mcp-Protocol-Version", "2027-01-01")), 400, "-32020"},
		"no method":                {with(set("Mcp-Method")), 400, "-32020"},
		"another method":           {with(set("Mcp-Method", "tools/list")), 400, "-32020"},
		"no name":                  {with(set("Mcp-Name")), 400, "-32020"},
		"another name":             {with(set("Mcp-Name", "fail")), 400, "-32020"},
		"two names":                {with(set("Mcp-Name", "echo", "fail")), 400, "more than once"},
		"two versions":             {with(set("Mcp-Protocol-Version", modern, legacy)), 400, "more than once"},
		"two tokens":               {with(set("Authorization", "Bearer "+deskToken, "Bearer "+otherToken)), 400, "more than once"},
		"no _meta":                 {with(func(r *request) { r.body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}` }), 400, "-32602"},
		"unknown version": {with(func(r *request) {
			r.body = strings.Replace(r.body, modern, "2099-01-01", 1)
			set("Mcp-Protocol-Version", "2099-01-01")(r)
		}), 400, "-32022"},
		"a version that never was":    {request{token: deskToken, body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, header: map[string][]string{"Mcp-Protocol-Version": {"1999-01-01"}}}, 400, "version"},
		"unknown method":              {request{token: deskToken, body: strings.Replace(modernCall("", "echo", "{}").body, "tools/call", "tools/nap", 1), header: map[string][]string{"Mcp-Protocol-Version": {modern}, "Mcp-Method": {"tools/nap"}}}, 404, "-32601"},
		"no session":                  {request{token: deskToken, body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`}, 400, "no session"},
		"a session of nobody":         {legacyCall(deskToken, "nobody", "1", "echo"), 404, "no such session"},
		"GET without a session":       {request{method: "GET", token: deskToken}, 405, "POST"},
		"GET of the era without them": {request{method: "GET", token: deskToken, header: map[string][]string{"Mcp-Protocol-Version": {modern}, "Mcp-Session-Id": {"x"}}}, 405, "POST"},
		"PUT":                         {request{method: "PUT", token: deskToken, body: "{}"}, 405, "POST"},
		"DELETE with a body":          {request{method: "DELETE", token: deskToken, body: "{}"}, 400, "only POST"},
		"another path":                {request{path: "/mcp/", token: deskToken, body: "{}"}, 404, "nothing"},
	} {
		t.Run(name, func(t *testing.T) { wants(t, e.do(row.r), row.status, row.part) })
	}
}
