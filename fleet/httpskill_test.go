package fleet_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/fleet"
)

// A skill may be a web service, described in the words of other things that are reached by URL.
func TestHTTPSkill(t *testing.T) {
	a, err := agentWith(t, `skills:
  score:
    http:
      url: https://scorer.example.com/score
      method: PUT
      headers: {x-team: data}
      credentials: [{header: X-Api-Key, secret: "file:/run/key"}]
      allowAddresses: [10.0.0.0/8]
      tls: {ca: /etc/ca.pem, cert: /etc/c.pem, key: /etc/k.pem, serverName: scorer}
      timeoutMs: 5000
      maxResponseBytes: 1000
  plain: {http: {url: "http://127.0.0.1:8000/"}}`)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := a.Skill("score")
	want := fleet.HTTPSkill{
		URL: "https://scorer.example.com/score", Method: "PUT", Headers: []fleet.HTTPHeader{{Name: "X-Team", Value: "data"}},
		Credentials: []fleet.MCPCredential{{Header: "X-Api-Key", SecretRef: "file:/run/key"}}, AllowAddresses: []string{"10.0.0.0/8"},
		TLS:     fleet.HTTPTLS{CA: "/etc/ca.pem", Cert: "/etc/c.pem", Key: "/etc/k.pem", ServerName: "scorer"},
		Timeout: 5 * time.Second, MaxResponseBytes: 1000, Position: s.HTTP.Position,
	}
	if !reflect.DeepEqual(*s.HTTP, want) {
		t.Errorf("got %+v", *s.HTTP)
	}
	if got := s.HTTP.SecretFiles(); !reflect.DeepEqual(got, []string{"/run/key", "/etc/k.pem"}) {
		t.Errorf("secret files %q", got)
	}
	if s, _ := a.Skill("plain"); s.Process != nil || s.HTTP.Method != "POST" || s.HTTP.MaxResponseBytes != 4<<20 {
		t.Errorf("got %+v", s.HTTP)
	}
}

func TestHTTPSkillRefused(t *testing.T) {
	for text, want := range map[string]string{
		"{}":                                                                                     "missing",
		"{url: x}":                                                                               "expected the URL of a web service",
		"{url: 'https://u:p@x/'}":                                                                "a URL holds no password",
		"{url: 'http://scorer.example.com/'}":                                                    "the service would be reached without encryption (use https",
		"{url: 'http://localhost:8000/'}":                                                        "the service would be reached without encryption",
		"{url: 'http://169.254.169.254/latest'}":                                                 "the service would be reached without encryption",
		"{url: 'https://x/', method: GET}":                                                       "expected one of POST, PUT, PATCH",
		"{url: 'https://x/', sandbox: off}":                                                      `unknown key "sandbox"`,
		"{url: 'https://x/', allowAddresses: [10]}":                                              "expected a string",
		"{url: 'https://x/', allowAddresses: ['10']}":                                            "is no range of addresses (write it as 10.1.2.0/24)",
		"{url: 'https://x/', headers: {authorization: Bearer s3cret}}":                           "the header Authorization holds a secret, which a file does not",
		"{url: 'https://x/', headers: {Agentd-Caller: 'agent://boss'}}":                          "the header Agentd-Caller is agentd's own",
		"{url: 'https://x/', headers: {idempotency-key: x}}":                                     "the header Idempotency-Key is agentd's own",
		"{url: 'https://x/', headers: {x-http-method-override: DELETE}}":                         "the header X-Http-Method-Override is agentd's own",
		"{url: 'https://x/', headers: {Proxy-Connection: close}}":                                "the header Proxy-Connection is agentd's own",
		"{url: 'https://x/', headers: {'a b': x}}":                                               "is no name of a header",
		"{url: 'https://x/', headers: {a: \"x\\r\\ny\"}}":                                        "has no control characters",
		"{url: 'https://x/', credentials: [{secret: s3cret}]}":                                   "not a reference to a secret",
		"{url: 'http://127.0.0.1/', credentials: [{secret: 'env:T'}]}":                           "a credential is sent by https only",
		"{url: 'https://x/', tls: {cert: c.pem}}":                                                "a certificate and its key stand together",
		"{url: 'http://127.0.0.1/', tls: {serverName: a}}":                                       "the URL is not https",
		"{url: 'https://x/', maxResponseBytes: 0}":                                               "maxResponseBytes",
		"{url: 'https://x/', timeoutMs: 90000000}":                                               "timeoutMs",
		"{url: 'https://x/'}, inline: true":                                                      "only a Go function runs inline",
		"{url: 'https://x/'}, process: {command: [a]}":                                           "a skill is a process, a worker, a web service",
		"{url: 'https://x/', headers: {Authorization: s3cret}, credentials: [{secret: s3cret}]}": "which a file does not",
	} {
		_, err := agentWith(t, "skills: {s: {http: "+text+"}}")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("the secret is shown: %v", err)
		}
	}
}
