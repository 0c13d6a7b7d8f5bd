package sdk_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/agentd/agentd/codegen/testdata/golden/shapes/shapes"
	"github.com/agentd/agentd/codegen/typed"
	"github.com/agentd/agentd/skill/sdk"
)

// serveShapes is a program that serves capabilities with generated types.
func serveShapes() {
	var mux typed.Mux
	typed.Handle(&mux, "get-user", "users", func(ctx context.Context, in shapes.GetUser_5d95Request) (string, error) {
		if in.ID != nil {
			return *in.ID + " for " + sdk.EnvironmentFrom(ctx).Caller, nil
		}
		return "nobody", nil
	})
	typed.Handle(&mux, "fails", "users", func(context.Context, shapes.GetUser_5d95Request) (string, error) {
		return "", errors.New("the password is hunter2")
	})
	sdk.Serve(&mux)
}

// A program with a generated server serves the capability that was called, also
// without arguments.
func TestServe(t *testing.T) {
	for _, test := range []struct {
		capability, stdin string
		stdout, stderr    string
	}{
		{"get-user", `{"id":"ada"}`, `"ada for agent://desk"`, ""},
		{"get-user", ` null `, `"nobody"`, ""},
		{"get-user", ``, `"nobody"`, ""},
		{"get-user", `{"id":7}`, `{"error":{"message":"decode the request of get-user: typed: /id: must be a string","retryable":false}}`, "/id"},
		{"fails", `{}`, ``, "hunter2"},
		{"other", `{}`, ``, `nothing is registered for the capability "other"`},
	} {
		cmd, stdout, stderr := child(t, "shapes", test.stdin, sdk.EnvCapability+"="+test.capability, sdk.EnvCaller+"=agent://desk")
		err := cmd.Run()
		if got := strings.TrimSpace(stdout.String()); got != test.stdout || (err == nil) != (test.stderr == "") || !strings.Contains(stderr.String(), test.stderr) {
			t.Errorf("%s %s: %s, %v, %s", test.capability, test.stdin, got, err, stderr)
		}
	}
}

// Main with a generated type takes calls without arguments as well, although the type
// itself refuses null.
func TestRunGeneratedType(t *testing.T) {
	for stdin, want := range map[string]string{"": "true", "null": "true", " null\n": "true", `{}`: "true", `{"id":"x"}`: "false"} {
		code, stdout, stderr := run(t, stdin, nil, func(_ context.Context, in shapes.GetUser_5d95Request) (bool, error) { return in.ID == nil, nil })
		if code != 0 || strings.TrimSpace(stdout) != want {
			t.Errorf("%q: exit %d, %s, %s", stdin, code, stdout, stderr)
		}
	}
}
