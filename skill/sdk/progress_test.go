package sdk_test

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/agentd/agentd/skill/sdk"
)

func TestProgressOnTheWire(t *testing.T) {
	var method, path, token string
	var body []byte
	socket := serve(t, func(w http.ResponseWriter, r *http.Request) {
		method, path, token = r.Method, r.URL.Path, r.Header.Get("Agentd-Call")
		body, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, `{"wanted":true}`)
	})
	ctx := sdk.WithEnvironment(t.Context(), sdk.Environment{Socket: socket, Call: "token-1"})
	wanted, err := sdk.Progress(ctx, map[string]any{"step": "<1>"})
	if err != nil || !wanted {
		t.Fatalf("%v, %v", wanted, err)
	}
	if method != "POST" || path != "/v1/agent/progress" || token != "token-1" || string(body) != `{"step":"<1>"}` {
		t.Errorf("sent %s %s, token %q: %s", method, path, token, body)
	}
}

func TestProgressErrors(t *testing.T) {
	if _, err := sdk.Progress(sdk.WithEnvironment(t.Context(), sdk.Environment{}), 1); !errors.Is(err, sdk.ErrNoDaemon) {
		t.Errorf("without agentd: %v", err)
	}
	ctx := answer(t, http.StatusForbidden, `{"error":{"code":"EAGENTRPC_INVALID_REQUEST","message":"ended"}}`)
	var refused *sdk.DaemonError
	if _, err := sdk.Progress(ctx, 1); !errors.As(err, &refused) || refused.HTTPStatus != http.StatusForbidden {
		t.Errorf("refused: %v", err)
	}
	if _, err := sdk.Progress(answer(t, http.StatusOK, `no JSON`), 1); err == nil {
		t.Error("a reply that is no JSON is taken")
	}
	if _, err := sdk.Progress(answer(t, http.StatusOK, `{}`), make(chan int)); err == nil {
		t.Error("a value that is no JSON is told")
	}
}
