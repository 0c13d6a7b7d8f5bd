package capability_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/schema"
)

// capabilityWith loads a capability x that also has these keys.
func capabilityWith(keys string) (*capability.Capability, error) {
	doc, err := capability.Parse("f.yaml", []byte("{version: 1, agent: agent://a, transports: [{kind: memory, topics: {requests: r}}], capabilities: [{name: x, "+keys+"}]}"), validating)
	if err != nil {
		return nil, err
	}
	return doc.Capabilities[0], nil
}

// wantFault demands one fault, at a pointer below the capability.
func wantFault(t *testing.T, err error, pointer, message string) {
	t.Helper()
	var le *capability.LoadError
	if !errors.As(err, &le) || len(le.Faults) != 1 || le.Faults[0].Pointer != "/capabilities/0"+pointer || !strings.Contains(le.Faults[0].Message, message) {
		t.Errorf("got %v, want %s: %s", err, pointer, message)
	}
}

// Every number has a least and a greatest value: both load, the next ones outside
// do not.
func TestNumbersAreBounded(t *testing.T) {
	const year = int64(365 * 24 * time.Hour / time.Millisecond)
	retry := func(get func(*capability.RetryPolicy) int64) func(*capability.Capability) int64 {
		return func(c *capability.Capability) int64 { return get(c.RetryPolicy) }
	}
	for _, tt := range []struct {
		text      string // with %d for the number
		pointer   string
		low, high int64
		get       func(*capability.Capability) int64
	}{
		{"timeoutMs: %d", "/timeoutMs", 1, year, func(c *capability.Capability) int64 { return c.Timeout.Milliseconds() }},
		{"concurrency: %d", "/concurrency", 1, 1_000_000, func(c *capability.Capability) int64 { return int64(c.Concurrency) }},
		{"rateLimit: {requests: %d}", "/rateLimit/requests", 1, 1_000_000_000, func(c *capability.Capability) int64 { return int64(c.RateLimit.Requests) }},
		{"rateLimit: {requests: 5, burst: %d}", "/rateLimit/burst", 1, 1_000_000_000, func(c *capability.Capability) int64 { return int64(c.RateLimit.Burst) }},
		{"retryPolicy: {maxAttempts: %d}", "/retryPolicy/maxAttempts", 1, 100, retry(func(p *capability.RetryPolicy) int64 { return int64(p.MaxAttempts) })},
		{"retryPolicy: {backoffMultiplier: %d}", "/retryPolicy/backoffMultiplier", 1, 100, retry(func(p *capability.RetryPolicy) int64 { return int64(p.BackoffMultiplier) })},
		{"retryPolicy: {initialDelayMs: %d}", "/retryPolicy/initialDelayMs", 1, year, retry(func(p *capability.RetryPolicy) int64 { return p.InitialDelay.Milliseconds() })},
		{"retryPolicy: {initialDelayMs: 1, maxDelayMs: %d}", "/retryPolicy/maxDelayMs", 1, year, retry(func(p *capability.RetryPolicy) int64 { return p.MaxDelay.Milliseconds() })},
	} {
		for _, n := range []int64{tt.low, tt.high} {
			if c, err := capabilityWith(fmt.Sprintf(tt.text, n)); err != nil || tt.get(c) != n {
				t.Errorf(tt.text+": %v", n, err)
			}
		}
		for _, n := range []int64{tt.low - 1, tt.high + 1} {
			_, err := capabilityWith(fmt.Sprintf(tt.text, n))
			wantFault(t, err, tt.pointer, fmt.Sprintf("from %d to %d", tt.low, tt.high))
		}
	}
}

// What a block leaves out has a default; a longer first delay lengthens the last.
func TestDefaultsOfBlocks(t *testing.T) {
	for text, want := range map[string]capability.RateLimit{
		"{requests: 7}":                          {Requests: 7, Period: time.Second, Burst: 7},
		"{requests: 7, burst: 1}":                {Requests: 7, Period: time.Second, Burst: 1},
		"{requests: 7, window: 2m}":              {Requests: 7, Period: 2 * time.Minute, Burst: 7},
		"{requests: 1, period: 500ms}":           {Requests: 1, Period: 500 * time.Millisecond, Burst: 1},
		"{requests: 1, period: 1ns}":             {Requests: 1, Period: 1, Burst: 1},
		"{requests: 1, shared: true}":            {Requests: 1, Period: time.Second, Burst: 1, Shared: true},
		"{requests: 1, shared: false, burst: 9}": {Requests: 1, Period: time.Second, Burst: 9},
	} {
		c, err := capabilityWith("rateLimit: " + text)
		if err != nil || *c.RateLimit != want {
			t.Errorf("%s: %+v, %v", text, c, err)
		}
	}
	for text, want := range map[string]capability.RetryPolicy{
		"{}":                        {MaxAttempts: 3, BackoffMultiplier: 2, InitialDelay: time.Second, MaxDelay: 10 * time.Second},
		"{initialDelayMs: 20000}":   {MaxAttempts: 3, BackoffMultiplier: 2, InitialDelay: 20 * time.Second, MaxDelay: 20 * time.Second},
		"{maxDelayMs: 1000}":        {MaxAttempts: 3, BackoffMultiplier: 2, InitialDelay: time.Second, MaxDelay: time.Second},
		"{backoffMultiplier: 1.25}": {MaxAttempts: 3, BackoffMultiplier: 1.25, InitialDelay: time.Second, MaxDelay: 10 * time.Second},
		"{retryOn: []}":             {MaxAttempts: 3, BackoffMultiplier: 2, InitialDelay: time.Second, MaxDelay: 10 * time.Second, RetryOn: []string{}},
		"{retryOn: [busy, timeout]}": {MaxAttempts: 3, BackoffMultiplier: 2, InitialDelay: time.Second, MaxDelay: 10 * time.Second,
			RetryOn: []string{"busy", "timeout"}},
	} {
		c, err := capabilityWith("retryPolicy: " + text)
		if err != nil || !reflect.DeepEqual(*c.RetryPolicy, want) {
			t.Errorf("%s: %+v, %v", text, c, err)
		}
	}
}

func TestValuesOutOfRange(t *testing.T) {
	for _, tt := range []struct{ text, pointer, want string }{
		{"rateLimit: {requests: 1, period: 0s}", "/rateLimit/period", "expected a duration"},
		{"rateLimit: {requests: 1, period: -1s}", "/rateLimit/period", "expected a duration"},
		{"rateLimit: {requests: 1, window: soon}", "/rateLimit/window", "expected a duration"},
		{"rateLimit: {requests: 1, every: 1s}", "/rateLimit/every", `unknown key "every"`},
		{"rateLimit: {burst: 1}", "/rateLimit", `the key "requests" is missing`},
		{"retryPolicy: {maxDelayMs: 999}", "/retryPolicy", "maxDelayMs is shorter than initialDelayMs"},
		{"retryPolicy: {backoffMultiplier: 0.99}", "/retryPolicy/backoffMultiplier", "from 1 to 100"},
		{"retryPolicy: {retryOn: [always]}", "/retryPolicy/retryOn/0", "expected one of timeout, network_error, rate_limit, busy, internal_error, handler_error"},
		{"retryPolicy: {attempts: 1}", "/retryPolicy/attempts", `unknown key "attempts"`},
		{"cost: {usd: -0.001}", "/cost/usd", "expected a number from 0"},
		{"delivery: kept", "/delivery", "expected one of durable"},
		{"progress: yes please", "/progress", "expected a boolean"},
		{"inputSchema: []", "/inputSchema", "schema must be a JSON object"},
		{"outputSchema: true", "/outputSchema", "schema must be a JSON object"},
	} {
		_, err := capabilityWith(tt.text)
		wantFault(t, err, tt.pointer, tt.want)
	}
	for text, want := range map[string]map[string]float64{
		"cost: {}":                       {},
		"cost: {usd: 0}":                 {"usd": 0},
		"cost: {usd: 1.5, tokens: 1e30}": {"usd": 1.5, "tokens": 1e30},
		fmt.Sprintf("cost: {a: %g}", math.MaxFloat64): {"a": math.MaxFloat64},
	} {
		if c, err := capabilityWith(text); err != nil || len(c.Cost) != len(want) || len(want) > 0 && !reflect.DeepEqual(c.Cost, want) {
			t.Errorf("%s: %+v, %v", text, c, err)
		}
	}
}

// Names are parts of topics, file names and tool names: letters, digits, - and _,
// at most 128 bytes.
func TestNames(t *testing.T) {
	load := func(name string) error {
		quoted, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := capability.Parse("f.json", []byte(`{"version":1,"agent":"agent://a","transports":[{"kind":"memory","topics":{"requests":"r"}}],"capabilities":[{"name":`+string(quoted)+`}]}`), validating)
		if err == nil && !slices.Equal(doc.Names(), []string{name}) {
			t.Errorf("%q loads as %q", name, doc.Names())
		}
		return err
	}
	for _, name := range []string{"a", "z", "A", "Z", "0", "9", "a-", "a_", "a-b_C9", strings.Repeat("n", capability.MaxNameBytes)} {
		if err := load(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"-a", "_a", "a b", "a.b", "a/b", "a:", "a@", "a[", "a`", "a{", "ä", "a\x00", " a", "a\n"} {
		wantFault(t, load(name), "/name", "must be URL-safe")
	}
	wantFault(t, load(strings.Repeat("n", capability.MaxNameBytes+1)), "/name", "longer than 128 bytes")
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9_-]{0,127}`).Draw(t, "name")
		if err := load(name); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
	})
}

// Names that differ in case alone would collide where they become file names.
func TestNamesThatCollide(t *testing.T) {
	for _, tt := range []struct{ names, want string }{
		{"a}, {name: b", ""},
		{"a}, {name: a", `duplicate capability name "a", first on line 1`},
		{"ab}, {name: aB", `the capability names "ab" and "aB" differ only in case`},
	} {
		_, err := capability.Parse("f.yaml", []byte("{version: 1, agent: agent://a, transports: [{kind: memory, topics: {requests: r}}], capabilities: [{name: "+tt.names+"}]}"), validating)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), "/capabilities/1/name: "+tt.want+" (rename one of them)")) {
			t.Errorf("%s: %v", tt.names, err)
		}
	}
}

// What one capability of several needs, the document needs.
func TestWhatADocumentNeeds(t *testing.T) {
	for text, want := range map[string][2]bool{
		"{name: a}, {name: b}":                                    {false, false},
		"{name: a}, {name: b, delivery: durable}":                 {true, false},
		"{name: a, progress: true}, {name: b}":                    {false, true},
		"{name: a, progress: true}, {name: b, delivery: durable}": {true, true},
		"{name: a, progress: false}":                              {false, false},
	} {
		doc, err := capability.Parse("f.yaml", []byte("{version: 1, agent: agent://a, transports: [{kind: memory, topics: {requests: r}}], capabilities: ["+text+"]}"), validating)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]bool{doc.KeepsRequests(), doc.PublishesProgress()}; got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// Locate leads a pointer into a schema to its place in the file, or to the
// nearest place above it.
func TestLocate(t *testing.T) {
	c := parse(t, reviewPR).Capabilities[0]
	for pointer, want := range map[string]int{
		"": 13, "/properties": 15, "/properties/severity": 17, "/properties/severity/enum/1": 17,
		"/required": 18, "/required/1": 18, "/none/at/all": 13, "/properties/none": 15,
	} {
		if got := c.Input.Locate(pointer); got.Line != want || got.File != "capabilities.yaml" {
			t.Errorf("%q is on line %d, want %d", pointer, got.Line, want)
		}
	}
}

// A document of the short form is compiled: no caller forgets to ask for it.
func TestLoadCompiles(t *testing.T) {
	doc, err := capability.Load("../agents/pr-reviewer/capabilities.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := doc.Capabilities[0]
	if c.Input.Schema == nil || c.Output.Check([]byte(`{}`)).Verdict != schema.Invalid {
		t.Errorf("got %+v", c.Output)
	}
}

// A version of the published form is two short decimal numbers.
func TestPublishedVersions(t *testing.T) {
	for version, want := range map[string]string{
		"1.0": "", "1.9": "", "1.123456789": "",
		"1.1234567890": "major.minor", "1.": "major.minor", ".0": "major.minor", "1.x": "major.minor", "1.-1": "major.minor", "1.0.0": "major.minor", "v1.0": "major.minor",
		"2.0": "2.0 is not supported", "10.0": "10.0 is not supported",
	} {
		p, err := capability.ParsePublished([]byte(fmt.Sprintf(`{"capabilities_version":%q,"agent":"agent://a","tool_schemas":{}}`, version)))
		var pe *capability.PublishedError
		switch {
		case want == "" && (err != nil || p.Version != version):
			t.Errorf("%s: %v", version, err)
		case want != "" && (!errors.As(err, &pe) || !strings.Contains(pe.Reason, want) || pe.NewerMajor != strings.Contains(want, "supported")):
			t.Errorf("%s: %v", version, err)
		}
	}
}

// FuzzParsePublished: what an agent sends back gives a form or a *PublishedError,
// and a form reads back as itself.
func FuzzParsePublished(f *testing.F) {
	f.Add(`{"capabilities_version":"1.0","agent":"agent://a","digest":"d","tool_schemas":{"x":{"inputSchema":{"type":"object"},"digest":"e"}}}`)
	f.Add(`{"capabilities_version":"2.0","agent":"agent://a","tool_schemas":{}}`)
	f.Add(`{"capabilities_version":"1.0","agent":"agent://a","tool_schemas":{"x":{"outputSchema":null,"timeoutMs":1e3}}}`)
	f.Fuzz(func(t *testing.T, src string) {
		p, err := capability.ParsePublished([]byte(src))
		var pe *capability.PublishedError
		if err != nil {
			if !errors.As(err, &pe) || pe.Reason == "" {
				t.Fatalf("not a *PublishedError: %v", err)
			}
			return
		}
		out, err := p.JSON()
		if err != nil {
			t.Fatal(err)
		}
		again, err := capability.ParsePublished(out)
		if err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		if text, err := again.JSON(); err != nil || string(text) != string(out) {
			t.Fatalf("%s reads back as %s, %v", out, text, err)
		}
	})
}
