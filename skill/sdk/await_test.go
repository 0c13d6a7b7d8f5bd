package sdk_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/skill/sdk"
)

func TestAwaitResult(t *testing.T) {
	var asked, token string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked, token = r.Method+" "+r.RequestURI, r.Header.Get(sdk.CallHeader)
		_, _ = io.WriteString(w, `{"status":"ok","correlationId":"a/b","latencyMs":3,"response":[1]}`)
	})
	ctx := sdk.WithEnvironment(t.Context(), sdk.Environment{URL: url, Call: "token-1"})
	result, err := sdk.AwaitResult(ctx, "a/b", 1500*time.Microsecond)
	if err != nil {
		t.Fatal(err)
	}
	if asked != "GET /v1/results/a%2Fb?timeoutMs=2" || token != "token-1" || string(result.Response) != "[1]" {
		t.Errorf("asked %s with %q, got %s", asked, token, result.Response)
	}
	if _, err := sdk.AwaitResult(sdk.WithEnvironment(t.Context(), sdk.Environment{}), "x", time.Second); !errors.Is(err, sdk.ErrNoDaemon) {
		t.Errorf("without an agent: %v", err)
	}
	var refused *sdk.DaemonError
	if _, err := sdk.AwaitResult(answer(t, http.StatusForbidden, `{"error":{"code":"C","message":"m"}}`), "x", time.Second); !errors.As(err, &refused) || refused.Code != "C" {
		t.Errorf("refused: %v", err)
	}
}

// Lines of the log name the call and its trace.
func TestLogger(t *testing.T) {
	var log bytes.Buffer
	saved := slog.Default()
	defer slog.SetDefault(saved)
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	sdk.Logger(sdk.WithEnvironment(t.Context(), sdk.Environment{CorrelationID: "c-1", Traceparent: "00-t1-s1-01"})).Info("hello")
	sdk.Logger(sdk.WithEnvironment(t.Context(), sdk.Environment{})).Info("nobody")
	if text := log.String(); !strings.Contains(text, "msg=hello correlationId=c-1 traceId=t1\n") || !strings.Contains(text, "msg=nobody\n") {
		t.Error(text)
	}
}
