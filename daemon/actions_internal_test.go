package daemon

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/action"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/rpc"
)

func TestRunsTypeScript(t *testing.T) {
	for version, want := range map[string]bool{
		"v20.20.2": false, "v22.5.1": false, "v22.6.0": true, "v22.18.0": true, "v23.0.0": true, "v100.1.0": true, "v21.9.9": false,
		"": true, "v22": true, "vx.y.z": true, // nothing to judge by
	} {
		if got := runsTypeScript(version); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}

// What a set has open is closed by the last of those that leave it, once.
func TestActionSetClosesAfterTheLastUse(t *testing.T) {
	set := &actionSet{}
	for range 2 {
		if !set.acquire() {
			t.Fatal("a set in force cannot be used")
		}
	}
	set.retire()
	if set.closed || set.acquire() {
		t.Errorf("closed %v under its users, or used after it was retired", set.closed)
	}
	set.release()
	if set.closed {
		t.Error("closed before its last user has left")
	}
	set.release()
	if !set.closed {
		t.Error("not closed")
	}
	set.retire()
	(*actionSet)(nil).retire()
	if (*actionSet)(nil).acquire() {
		t.Error("no set can be used")
	}
}

// A failure of an action becomes one of a skill: what its caller may see stays, and what
// went wrong inside is an incident.
func TestSkillErrorOfAnAction(t *testing.T) {
	cause := errors.New("dial tcp 10.0.0.7: refused")
	for _, test := range []struct {
		e         *action.Error
		code      rpc.Code
		retryable bool
	}{
		{action.Errorf(action.NetworkError, "the host does not answer").Because(cause), 0, true},
		{action.Errorf(action.PermissionDenied, "the host is not on the list"), 0, false},
		{action.Errorf(action.BadResult, "not what it says").Because(cause), rpc.CodeBadSkillOutput, false},
	} {
		var public *rpc.SkillError
		if err := skillError(test.e); !errors.As(err, &public) || public.Code != test.code || public.Retryable != test.retryable || strings.Contains(public.Message, "10.0.0.7") {
			t.Errorf("%v: %+v", test.e.Code, err)
		}
	}
	var public *rpc.SkillError
	if err := skillError(action.Errorf(action.Internal, "x").Because(cause)); errors.As(err, &public) || err.Error() != cause.Error() {
		t.Errorf("an internal error is shown, or the incident has not its cause: %v", err)
	}
}

// Every code of an execution is recorded as one of a call.
func TestCallCodes(t *testing.T) {
	for c, want := range map[action.Code]rpc.Code{
		action.NotFound: rpc.CodeNoCapability, action.PermissionDenied: rpc.CodeDenied, action.InvalidArguments: rpc.CodeSchemaViolation,
		action.RateLimitExceeded: rpc.CodeRateLimited, action.Timeout: rpc.CodeDeadlineExceeded, action.Canceled: rpc.CodeCancelled,
		action.BadResult: rpc.CodeBadSkillOutput, action.Internal: rpc.CodeHandlerError, action.NetworkError: rpc.CodeHandlerError,
	} {
		if got := callCode(c); got != want {
			t.Errorf("%s: %s, want %s", c, got, want)
		}
	}
}

func TestReferredFiles(t *testing.T) {
	got := referredFiles([]byte(`{"credentials":[{"secret":"file:/run/a"},{"secret":"env:B"}],"key":"file:/run/c","n":1,"text":"x"}`))
	slices.Sort(got)
	if !slices.Equal(got, []string{"/run/a", "/run/c"}) || referredFiles([]byte(`{`)) != nil {
		t.Error(got)
	}
}

func TestTraceID(t *testing.T) {
	for text, want := range map[string]string{
		"0af76519-16cd-43dd-8448-eb211c80319c": "0af7651916cd43dd8448eb211c80319c", "0AF7651916CD43DD8448EB211C80319C": "0af7651916cd43dd8448eb211c80319c",
		"uuid": "", "": "", "0af7651916cd43dd8448eb211c80319": "",
	} {
		if got := traceID(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	if parent := traceparent("0af7651916cd43dd8448eb211c80319c"); rpc.TraceID(parent) != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("%s is no trace context", parent)
	}
}

func TestGranted(t *testing.T) {
	for want, scopes := range map[string][]fleet.PermissionRule{"**": nil, "": {}, "a:b": {{Pattern: "a:b"}}} {
		if got := strings.Join(granted(&fleet.AgentFile{Scopes: scopes}), " "); got != want {
			t.Errorf("%v: %q, want %q", scopes, got, want)
		}
	}
}
