package envelope_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/agentd/agentd/envelope"
)

func TestAddress(t *testing.T) {
	for _, good := range []string{"agent://a", "agent://0", "agent://pr-reviewer", "agent://a.b_c-d", "agent://z9", "agent://9z", "agent://a-", "agent://a.", "agent://" + strings.Repeat("a", 128)} {
		if a, err := envelope.ParseAddress(good); err != nil || envelope.AddressOf(a.ID()) != a {
			t.Errorf("%s: %v, %v", good, a, err)
		}
	}
	for bad, reason := range map[string]string{
		"":                                    "agent must be `agent://<id>`",
		"pr-reviewer":                         "agent must be `agent://<id>`",
		"agent://":                            "empty",
		"agent://-a":                          "must start with",
		"agent://A":                           "must start with",
		"agent://a/b":                         "may hold",
		"agent://a\n":                         "may hold",
		"agent://a..b":                        "`..`",
		"agent://..":                          "`..`",
		"agent://_a":                          "must start with",
		"agent://.a":                          "must start with",
		"agent://`":                           "must start with",
		"agent://{":                           "must start with",
		"agent:///":                           "must start with",
		"agent://:":                           "must start with",
		"agent://aé":                          "may hold",
		"agent://aB":                          "may hold",
		"agent://a:1":                         "may hold",
		"Agent://a":                           "agent must be `agent://<id>`",
		"agent://" + strings.Repeat("a", 129): "longer than",
	} {
		_, err := envelope.ParseAddress(bad)
		var typed *envelope.AddressError
		if !errors.As(err, &typed) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q: error %v, want %q", bad, err, reason)
		}
	}
}

// Ids come from command lines and files by themselves: the same rules hold.
func TestCheckID(t *testing.T) {
	for _, good := range []string{"a", "z", "0", "9", "a-b_c.d", strings.Repeat("a", envelope.MaxIDBytes)} {
		if err := envelope.CheckID(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for bad, reason := range map[string]string{
		"": "is empty", "-": "must start with", "a b": "may hold", "a..b": "`..`", "agent://a": "not ':'", strings.Repeat("a", envelope.MaxIDBytes+1): "longer than 128",
	} {
		err := envelope.CheckID(bad)
		if typed, ok := errors.AsType[*envelope.AddressError](err); !ok || !strings.Contains(typed.Reason, reason) {
			t.Errorf("%q: %v, want %q", bad, err, reason)
		}
	}
}

// An error shows a bounded part of what was given.
func TestAddressErrorsAreBounded(t *testing.T) {
	long := strings.Repeat("a", 10_000)
	_, parsed := envelope.ParseAddress("agent://" + long)
	for name, err := range map[string]error{"address": parsed, "id": envelope.CheckID(long)} {
		if typed, ok := errors.AsType[*envelope.AddressError](err); !ok || len(typed.Input) != envelope.MaxIDBytes {
			t.Errorf("%s: %d bytes of input in the error", name, len(typed.Input))
		}
	}
}
