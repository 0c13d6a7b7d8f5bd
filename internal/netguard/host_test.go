package netguard

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/agentd/agentd/internal/failure"
)

func TestHostRules(t *testing.T) {
	for rule, want := range map[string]struct{ yes, no []string }{
		"example.com": {
			yes: []string{"http://example.com/", "https://EXAMPLE.com./x?y#z", "https://example.com:443/", "http://example.com:80"},
			no: []string{"https://example.com:8443/", "http://example.com:443/", "https://www.example.com/", "https://example.com.evil.test/", "https://evilexample.com/",
				"https://example.com@evil.test/", "https://evil.test/example.com", "https://evil.test#example.com", "https://evil.test?example.com",
				"https://user:pass@example.com/", "ftp://example.com/", "//example.com/", "https:example.com", "https:///example.com",
				"https://example.com%00.evil.test/", "https://example.com\\@evil.test/", "https://example。com/", "https://exampl\u212ae.com/"},
		},
		"Example.COM.":       {yes: []string{"https://example.com/"}, no: []string{"https://www.example.com/"}},
		"*.Example.COM":      {yes: []string{"https://a.example.com/"}},
		"[2606:4700:0:0::5]": {yes: []string{"https://[2606:4700::5]/"}},
		"*.example.com": {
			yes: []string{"https://a.example.com/", "https://a.b.example.com/"},
			no:  []string{"https://example.com/", "https://.example.com/", "https://aexample.com/", "https://a.example.com.evil.test/", "https://1.2.3.4/"},
		},
		"example.com:8443":   {yes: []string{"https://example.com:8443/"}, no: []string{"https://example.com/", "https://example.com:84430/"}},
		"example.com:*":      {yes: []string{"https://example.com:8443/", "http://example.com/", "http://example.com:0080/"}, no: []string{"https://a.example.com:1/", "http://example.com:0/", "http://example.com:65616/"}},
		"*":                  {yes: []string{"https://anything.test/", "https://8.8.8.8/"}, no: []string{"https://anything.test:81/", "https://127.0.0.1/", "https://[::1]/"}},
		"*:*":                {yes: []string{"https://anything.test:81/"}, no: []string{"file:///etc/passwd", "gopher://anything.test:70/"}},
		"8.8.8.8":            {yes: []string{"https://8.8.8.8/", "https://[::ffff:8.8.8.8]/"}, no: []string{"https://8.8.4.4/", "https://134744072/", "https://0x8.8.8.8/", "https://8.8.2056/", "https://010.8.8.8/"}},
		"[2606:4700::1]:443": {yes: []string{"https://[2606:4700::1]/", "https://[2606:4700:0:0::1]/"}, no: []string{"https://[2606:4700::2]/", "https://[2606:4700::1%25eth0]/"}},
	} {
		c, err := New(Policy{Hosts: []string{rule}})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range want.yes {
			u, err := url.Parse(text)
			if err == nil {
				err = c.judge(u)
			}
			if err != nil {
				t.Errorf("%s refuses %s: %v", rule, text, err)
			}
		}
		for _, text := range want.no {
			u, err := url.Parse(text)
			if err == nil {
				err = c.judge(u)
			}
			if err == nil {
				t.Errorf("%s allows %s", rule, text)
			}
		}
	}
}

func TestPolicyIsRefused(t *testing.T) {
	for want, p := range map[string]Policy{
		"no hosts":              {},
		"stands alone":          {Hosts: []string{"*example.com"}},
		"an address":            {Hosts: []string{"*.8.8.8.8"}},
		"longer than 253":       {Hosts: []string{strings.Repeat("a.", 127) + "test"}},
		"is empty":              {Hosts: []string{""}},
		"longer than 63":        {Hosts: []string{strings.Repeat("a", 64) + ".test"}},
		"ends in a number":      {Hosts: []string{"127.1"}},
		"the port":              {Hosts: []string{"example.com:0"}},
		"in brackets":           {Hosts: []string{"::1"}},
		"without a scheme":      {Hosts: []string{"https://example.com"}},
		"characters":            {Hosts: []string{"exämple.com"}},
		"between dots":          {Hosts: []string{"a..b"}},
		`no "]"`:                {Hosts: []string{"[::1"}},
		"a zone":                {Hosts: []string{"[fe80::1%eth0]"}},
		"a range":               {Hosts: []string{"a.test"}, AllowAddresses: []netip.Prefix{{}}},
		"content type":          {Hosts: []string{"a.test"}, ContentTypes: []string{"json"}},
		"is for one host":       {Hosts: []string{"a.test"}, Credentials: []Credential{{Host: "*.a.test", Header: "X-Key", Value: "v"}}},
		"is not a header":       {Hosts: []string{"a.test"}, Credentials: []Credential{{Host: "a.test", Header: "Host", Value: "v"}}},
		"not valid in a header": {Hosts: []string{"a.test"}, Credentials: []Credential{{Host: "a.test", Header: "X-Key", Value: "a\r\nb"}}},
	} {
		if _, err := New(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		} else if strings.Contains(err.Error(), "a\r\nb") {
			t.Errorf("the error has the credential: %v", err)
		}
	}
}

// Whatever the text, what passes is a URL that reads the same when it is read again, and
// leads to the listed host.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{
		"https://example.com/", "http://EXAMPLE.com.:443/a?b#c", "https://[::ffff:127.0.0.1]/", "http://2130706433/", "http://0x7f.1/",
		"http://017700000001/", "https://example.com:8443\\@evil.test", "file:///proc/self/environ", "https://a@b@example.com/", "https://example.com%2eevil.test/",
	} {
		f.Add(seed)
	}
	c, err := New(Policy{Hosts: []string{"example.com:*", "*.example.com"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		req, err := c.request(t.Context(), Request{URL: text})
		if err != nil {
			if failure.As(err) == nil {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		again, err := url.Parse(req.URL.String())
		if err != nil {
			t.Fatalf("%q passes and cannot be read again: %v", text, err)
		}
		host := again.Hostname()
		if host != "example.com" && !strings.HasSuffix(host, ".example.com") || net.ParseIP(host) != nil || again.User != nil {
			t.Fatalf("%q leads to %q", text, host)
		}
	})
}
