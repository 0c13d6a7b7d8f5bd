package sdk_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/agentd/agentd/skill/sdk"
)

func TestProgressOnTheWire(t *testing.T) {
	var method, path, token string
	var body []byte
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		method, path, token = r.Method, r.URL.Path, r.Header.Get("Agentd-Call")
		body, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, `{"wanted":true}`)
	})
	ctx := sdk.WithEnvironment(t.Context(), sdk.Environment{URL: url, Call: "token-1"})
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

func TestRequestHearsProgress(t *testing.T) {
	var accept string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		accept = r.Header.Get("Accept")
		for _, line := range []string{
			`{"progress":{"seq":1,"attempt":1,"value":{"n":1.0}}}`, `{"later":"than this package"}`,
			`{"progress":{"seq":3,"attempt":1,"value":"` + strings.Repeat("x", 60_000) + `"}}`,
			`{"result":{"status":"ok","correlationId":"id-1","response":{"text":"hi"}}}`,
		} {
			_, _ = io.WriteString(w, line+"\n")
			w.(http.Flusher).Flush()
		}
	})
	ctx := sdk.WithEnvironment(t.Context(), sdk.Environment{URL: url})
	var heard []sdk.ProgressEvent
	result, err := sdk.RequestAgent(ctx, sdk.Request{
		To: "agent://b", Capability: "c", OnProgress: func(e sdk.ProgressEvent) { heard = append(heard, e) },
	})
	if err != nil || result.Status != sdk.StatusOK || string(result.Response) != `{"text":"hi"}` {
		t.Fatalf("%+v, %v", result, err)
	}
	if accept != "application/x-ndjson" || len(heard) != 2 || heard[0].Seq != 1 || string(heard[0].Value) != `{"n":1.0}` ||
		heard[1].Seq != 3 || len(heard[1].Value) != 60_002 {
		t.Errorf("asked for %s, heard %.100v", accept, heard)
	}
}

func TestRequestWithProgressFails(t *testing.T) {
	for name, body := range map[string]string{
		"no result":      `{"progress":{"seq":1,"attempt":1,"value":1}}` + "\n",
		"half a line":    `{"result":{"sta`,
		"no JSON":        "hello\n",
		"no such status": `{"result":{}}` + "\n",
	} {
		_, err := sdk.RequestAgent(answer(t, http.StatusOK, body), sdk.Request{To: "agent://b", Capability: "c", OnProgress: func(sdk.ProgressEvent) {}})
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	ctx := answer(t, http.StatusForbidden, `{"error":{"code":"EAGENTRPC_INVALID_REQUEST","message":"ended"}}`)
	var refused *sdk.DaemonError
	_, err := sdk.RequestAgent(ctx, sdk.Request{To: "agent://b", Capability: "c", OnProgress: func(sdk.ProgressEvent) {}})
	if !errors.As(err, &refused) || refused.Code != "EAGENTRPC_INVALID_REQUEST" {
		t.Errorf("refused: %v", err)
	}
}
