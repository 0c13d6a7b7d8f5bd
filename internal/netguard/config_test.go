package netguard_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/netguard"
)

// Each key of the files' form reaches the policy.
func TestConfig(t *testing.T) {
	var c netguard.Config
	if err := json.Unmarshal([]byte(`{"hosts": ["a.test"], "allowAddresses": ["10.0.0.0/8"], "contentTypes": ["text/*"], "timeoutMs": 1500, "maxBytes": 7, "maxRedirects": 2,
		"credentials": [{"host": "a.test", "secret": "env:A"}, {"host": "b.test", "header": "X-Key", "scheme": "Key", "secret": "env:B"}]}`), &c); err != nil {
		t.Fatal(err)
	}
	p, err := c.Policy(func(ref string) (string, error) { return "value of " + ref, nil })
	if err != nil {
		t.Fatal(err)
	}
	want := netguard.Policy{
		Hosts: []string{"a.test"}, AllowAddresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, ContentTypes: []string{"text/*"},
		Timeout: 1500 * time.Millisecond, MaxBodyBytes: 7, MaxRedirects: 2,
		Credentials: []netguard.Credential{{Host: "a.test", Header: "Authorization", Value: "value of env:A"}, {Host: "b.test", Header: "X-Key", Value: "Key value of env:B"}},
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("%+v", p)
	}
	none := 0
	c.MaxRedirects = &none
	if p, err = c.Policy(func(string) (string, error) { return "x", nil }); err != nil || p.MaxRedirects >= 0 {
		t.Errorf("no redirects became %d, %v", p.MaxRedirects, err)
	}
	if _, err := c.Policy(func(string) (string, error) { return "", errors.New("not set") }); err == nil || !strings.Contains(err.Error(), "credentials[0]: not set") {
		t.Error(err)
	}
}

// JSON is passed on as it was written, and everything else as text.
func TestResult(t *testing.T) {
	for _, row := range []struct{ media, charset, body, want string }{
		{"application/json", "utf-8", ` {"n": 1.10} `, `{"n": 1.10}`},
		{"application/vnd.x+json", "", "\xef\xbb\xbf[]", `[]`},
		{"application/json", "", `{"a":1,"a":2}`, `"{\"a\":1,\"a\":2}"`},
		{"application/json", "", strings.Repeat("[", 129) + strings.Repeat("]", 129), `"` + strings.Repeat("[", 129) + strings.Repeat("]", 129) + `"`},
		{"text/plain", "", `{}`, `"{}"`},
		{"text/plain", "iso-8859-1", "\xfc", `"ü"`},
		{"text/plain", "", "\xfc", `"�"`},
		{"", "", "", `""`},
	} {
		r := netguard.Response{Status: 200, MediaType: row.media, Charset: row.charset, Body: []byte(row.body), Header: http.Header{"X-A": {"1", "\xff"}}}
		got := r.Result()
		if string(got.Body) != row.want || got.Headers["x-a"] != "1, �" || got.Status != 200 {
			t.Errorf("%s %q: %s %v", row.media, row.body, got.Body, got.Headers)
		}
	}
}
