package rpc

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/ijson"
)

// Bounds on reports of what models used. A skill is not trusted with the memory of whoever
// counts them.
const (
	// MaxModelUsageBytes bounds one report.
	MaxModelUsageBytes = 4 << 10
	// MaxModelUsages bounds the reports of one call.
	MaxModelUsages = 1000
	// MaxModelTokens bounds each count of tokens.
	MaxModelTokens = 1_000_000_000
	// MaxModelName bounds the names of a model and its provider, in bytes.
	MaxModelName = 128
	// MaxModelDuration bounds how long a request to a model took.
	MaxModelDuration = time.Hour
)

// ModelOperations are what a model can be asked for, in the words of OpenTelemetry's
// gen_ai.operation.name. The first is the one of a report that names none.
func ModelOperations() []string {
	return []string{"chat", "text_completion", "generate_content", "embeddings"}
}

// A ModelUsage is what one request to a language model used, by the word of the skill that made
// the request.
type ModelUsage struct {
	// Provider is who serves the model, such as "anthropic" or "openai", and Model which one was
	// asked. Both have letters, digits and ._:/@+- alone.
	Provider, Model string
	// Operation is one of [ModelOperations].
	Operation string
	// InputTokens and OutputTokens are at most [MaxModelTokens] each; 0 is none, or not known.
	InputTokens, OutputTokens int64
	// Duration is how long the request took, at most [MaxModelDuration]; 0 is not known.
	Duration time.Duration
}

// ReadModelUsage reads a report, {"provider", "model", "operation"?, "inputTokens"?,
// "outputTokens"?, "durationMs"?}. Members that it does not have are passed over. An error,
// always an [*Error], names the member that is wrong, and holds no value of it.
func ReadModelUsage(report json.RawMessage) (*ModelUsage, error) {
	if n := len(report); n > MaxModelUsageBytes {
		return nil, NewError(CodePayloadTooLarge, nil, "the report of a model's usage has %d bytes, and %d are allowed", n, MaxModelUsageBytes)
	}
	if err := ijson.Check(report, envelope.MaxDepth); err != nil {
		return nil, NewError(CodeInvalidPayload, err, "the report of a model's usage is not JSON: %s", err)
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(report, &members) != nil || members == nil {
		return nil, NewError(CodeInvalidPayload, nil, "the report of a model's usage is no object")
	}
	u := &ModelUsage{Operation: ModelOperations()[0]}
	for name, to := range map[string]*string{"provider": &u.Provider, "model": &u.Model, "operation": &u.Operation} {
		if text, ok := members[name]; ok && (text[0] != '"' || json.Unmarshal(text, to) != nil) {
			return nil, NewError(CodeInvalidPayload, nil, "%s of a model's usage is no string", name)
		}
	}
	var ms int64
	for _, number := range []struct {
		name string
		to   *int64
		most int64
	}{
		{"inputTokens", &u.InputTokens, MaxModelTokens}, {"outputTokens", &u.OutputTokens, MaxModelTokens},
		{"durationMs", &ms, MaxModelDuration.Milliseconds()},
	} {
		text, ok := members[number.name]
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil || n < 0 || n > number.most {
			return nil, NewError(CodeInvalidPayload, nil, "%s of a model's usage is no integer from 0 to %d", number.name, number.most)
		}
		*number.to = n
	}
	u.Duration = time.Duration(ms) * time.Millisecond
	if err := u.check(); err != nil {
		return nil, err
	}
	return u, nil
}

// check holds the names to their bounds: they become labels of metrics and names of spans.
func (u *ModelUsage) check() error {
	for _, name := range []struct{ of, text string }{{"provider", u.Provider}, {"model", u.Model}} {
		if !isModelName(name.text) {
			return NewError(CodeInvalidPayload, nil, "%s of a model's usage is not 1 to %d letters, digits and ._:/@+-", name.of, MaxModelName)
		}
	}
	if !slices.Contains(ModelOperations(), u.Operation) {
		return NewError(CodeInvalidPayload, nil, "operation of a model's usage is none of %q", ModelOperations())
	}
	return nil
}

func isModelName(s string) bool {
	if s == "" || len(s) > MaxModelName {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '_', c == ':', c == '/', c == '@', c == '+', c == '-':
		default:
			return false
		}
	}
	return true
}
