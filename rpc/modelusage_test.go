package rpc_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/rpc"
)

func TestReadModelUsage(t *testing.T) {
	u, err := rpc.ReadModelUsage([]byte(`{"provider":"aws.bedrock","model":"meta/llama-3:70b@eu","inputTokens":1200,"outputTokens":34,"durationMs":1500,"later":[1]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := rpc.ModelUsage{Provider: "aws.bedrock", Model: "meta/llama-3:70b@eu", Operation: "chat", InputTokens: 1200, OutputTokens: 34, Duration: 1500 * time.Millisecond}
	if *u != want {
		t.Errorf("it is read as %+v", *u)
	}
}

// What a skill reports cannot be more than a counter, a label or a span's name takes, and its
// words come back in no error.
func TestReadModelUsageRefuses(t *testing.T) {
	for report, member := range map[string]string{
		`[]`:                              "no object",
		`null`:                            "no object",
		`{"provider":"p","provider":"q"}`: "not JSON",
		`{"provider":"p"}`:                "model",
		`{"model":"m"}`:                   "provider",
		`{"provider":"p","model":7}`:      "model",
		`{"provider":"p","model":null}`:   "model",
		`{"provider":"p","model":"hunter2 is the password"}`:                                                             "model",
		`{"provider":"p","model":"hunter2\nx"}`:                                                                          "model",
		`{"provider":"p","model":"` + strings.Repeat("x", rpc.MaxModelName+1) + `"}`:                                     "model",
		`{"provider":"p","model":"m","operation":"hunter2"}`:                                                             "operation",
		`{"provider":"p","model":"m","inputTokens":-1}`:                                                                  "inputTokens",
		`{"provider":"p","model":"m","inputTokens":1.5}`:                                                                 "inputTokens",
		`{"provider":"p","model":"m","inputTokens":"hunter2"}`:                                                           "inputTokens",
		`{"provider":"p","model":"m","inputTokens":1e99}`:                                                                "inputTokens",
		`{"provider":"p","model":"m","outputTokens":` + strconv.Itoa(rpc.MaxModelTokens+1) + `}`:                         "outputTokens",
		`{"provider":"p","model":"m","durationMs":` + strconv.FormatInt(rpc.MaxModelDuration.Milliseconds()+1, 10) + `}`: "durationMs",
		`{"provider":"p","model":"m","x":"` + strings.Repeat("x", rpc.MaxModelUsageBytes) + `"}`:                         "bytes",
	} {
		u, err := rpc.ReadModelUsage([]byte(report))
		if err == nil || !strings.Contains(err.Error(), member) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%.80s: %+v, %v", report, u, err)
		}
	}
}

func FuzzReadModelUsage(f *testing.F) {
	f.Add([]byte(`{"provider":"openai","model":"m","inputTokens":1}`))
	f.Fuzz(func(t *testing.T, report []byte) {
		u, err := rpc.ReadModelUsage(report)
		if err != nil {
			return
		}
		if u.Model == "" || len(u.Model) > rpc.MaxModelName || len(u.Provider) > rpc.MaxModelName || u.InputTokens < 0 || u.OutputTokens < 0 || u.InputTokens > rpc.MaxModelTokens || u.Duration < 0 || u.Duration > rpc.MaxModelDuration {
			t.Errorf("%q: %+v", report, u)
		}
	})
}
