package sdk_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/skill/sdk"
)

func TestModelUsageOnTheWire(t *testing.T) {
	var path, token string
	var body []byte
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		path, token = r.URL.Path, r.Header.Get("Agentd-Call")
		body, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, `{"taken":true}`)
	})
	ctx := sdk.WithEnvironment(t.Context(), sdk.Environment{URL: url, Call: "token-1"})
	taken, err := sdk.ReportModelUsage(ctx, sdk.ModelUsage{Provider: "openai", Model: "m", InputTokens: 12, OutputTokens: 3, Duration: time.Second})
	if err != nil || !taken {
		t.Fatalf("%v, %v", taken, err)
	}
	if want := `{"provider":"openai","model":"m","inputTokens":12,"outputTokens":3,"durationMs":1000}`; path != "/v1/agent/model-usage" || token != "token-1" || string(body) != want {
		t.Errorf("sent %s, token %q: %s", path, token, body)
	}
}

// What agentd would refuse is not sent, and an older agentd takes nothing, which is no error.
func TestModelUsageErrors(t *testing.T) {
	good := sdk.ModelUsage{Provider: "p", Model: "m"}
	for name, change := range map[string]func(*sdk.ModelUsage){
		"Provider": func(u *sdk.ModelUsage) { u.Provider = "" }, "Model": func(u *sdk.ModelUsage) { u.Model = "a b" },
		"Operation": func(u *sdk.ModelUsage) { u.Operation = "dream" }, "tokens": func(u *sdk.ModelUsage) { u.InputTokens = -1 },
		"Duration": func(u *sdk.ModelUsage) { u.Duration = 2 * time.Hour },
	} {
		bad := good
		change(&bad)
		if _, err := sdk.ReportModelUsage(answer(t, http.StatusOK, `{}`), bad); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if taken, err := sdk.ReportModelUsage(answer(t, http.StatusForbidden, `{"error":{"code":"not-an-operator","message":"no"}}`), good); taken || err != nil {
		t.Errorf("an older agentd: %v, %v", taken, err)
	}
	var refused *sdk.DaemonError
	if _, err := sdk.ReportModelUsage(answer(t, http.StatusForbidden, `{"error":{"code":"EAGENTRPC_INVALID_REQUEST","message":"ended"}}`), good); !errors.As(err, &refused) {
		t.Errorf("refused: %v", err)
	}
	if _, err := sdk.ReportModelUsage(sdk.WithEnvironment(t.Context(), sdk.Environment{}), good); !errors.Is(err, sdk.ErrNoDaemon) {
		t.Errorf("without agentd: %v", err)
	}
}
