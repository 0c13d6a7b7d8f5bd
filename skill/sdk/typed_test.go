package sdk_test

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/agentd/agentd/codegen/typed"
	"github.com/agentd/agentd/skill/sdk"
)

func TestCallerCarriesTypedCalls(t *testing.T) {
	var body []byte
	var token string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		token = r.Header.Get("Agentd-Call")
		body, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, `{"status":"ok","correlationId":"id","latencyMs":1,"response":{"text":"hi"}}`)
	})
	ctx := sdk.WithEnvironment(t.Context(), sdk.Environment{URL: url, Call: "token-1"})
	got, err := typed.Request[map[string]string](ctx, sdk.Caller(), "agent://b", "c", map[string]int64{"n": 1},
		[]typed.CallOption{typed.WithTimeout(time.Second), typed.WithIdempotencyKey("k"), typed.WithTenant("acme"), typed.WithTraceparent("00-t-s-01")})
	if err != nil || got["text"] != "hi" {
		t.Errorf("%v, %v", got, err)
	}
	const want = `{"to":"agent://b","capability":"c","payload":{"n":1},"timeoutMs":1000,"mode":"sync","idempotencyKey":"k","tenantId":"acme","traceparent":"00-t-s-01"}`
	if string(body) != want || token != "token-1" {
		t.Errorf("sent %s, token %q\nwant %s", body, token, want)
	}
}

func TestCallerErrors(t *testing.T) {
	ctx := answer(t, 200, `{"status":"timeout","correlationId":"id","latencyMs":1,"error":{"code":"EAGENTRPC_TIMEOUT","message":"late","retryable":true}}`)
	var call *sdk.CallError
	if _, err := typed.Request[string](ctx, sdk.Caller(), "agent://b", "c", nil, nil); !errors.As(err, &call) || !call.Retryable() {
		t.Errorf("err = %v, want a CallError", err)
	}
	nowhere := sdk.WithEnvironment(t.Context(), sdk.Environment{})
	if _, err := typed.Request[string](nowhere, sdk.Caller(), "agent://b", "c", nil, nil); !errors.Is(err, sdk.ErrNoDaemon) {
		t.Errorf("err = %v, want ErrNoDaemon", err)
	}
}
