package sdk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/agentd/agentd/skill/internal/wire"
)

// A ModelUsage is what one request to a language model used. Its words and numbers become
// metrics and spans of the agent; nothing of the question or the answer is in it.
type ModelUsage struct {
	// Provider is who serves the model, such as "anthropic", and Model which one was asked. Both
	// are 1 to 128 letters, digits and ._:/@+-.
	Provider, Model string
	// Operation is chat, text_completion, generate_content or embeddings; "" is chat.
	Operation string
	// InputTokens and OutputTokens are from 0 to 1,000,000,000.
	InputTokens, OutputTokens int64
	// Duration is how long the request took, at most an hour; 0 is not known.
	Duration time.Duration
}

// Bounds of a [ModelUsage], which are agentd's.
const (
	maxModelName   = 128
	maxModelTokens = 1_000_000_000
	modelNames     = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/@+-"
)

// codeNotAnOperator is how an agentd that takes no reports refuses them.
const codeNotAnOperator = "not-an-operator"

// ReportModelUsage reports what one request to a language model used, when it has ended, as a part
// of the running call. The environment comes from ctx, as [Main] sets it, or else from the
// process.
//
// The result taken is false for an agentd that takes no reports. An error means that nothing was
// counted: [ErrNoDaemon], a [*DaemonError] such as for a call that has ended or has made 1,000
// reports, what is wrong with the report, a context error, or a broken connection. It is safe for
// concurrent use.
func ReportModelUsage(ctx context.Context, u ModelUsage) (taken bool, err error) {
	env, ok := ctx.Value(environmentKey{}).(Environment)
	if !ok {
		if env, err = ReadEnvironment(os.Getenv); err != nil {
			return false, err
		}
	}
	call := workerCallFrom(ctx)
	if call == nil && env.URL == "" && env.Socket == "" {
		return false, ErrNoDaemon
	}
	if err := u.check(); err != nil {
		return false, err
	}
	body, err := marshal(struct {
		Provider     string `json:"provider"`
		Model        string `json:"model"`
		Operation    string `json:"operation,omitempty"`
		InputTokens  int64  `json:"inputTokens"`
		OutputTokens int64  `json:"outputTokens"`
		DurationMs   int64  `json:"durationMs"`
	}{u.Provider, u.Model, u.Operation, u.InputTokens, u.OutputTokens, u.Duration.Milliseconds()})
	if err != nil {
		return false, fmt.Errorf("sdk: encode a model's usage: %w", err)
	}
	if call != nil {
		return call.modelUsage(ctx, body)
	}
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	_, err = post(ctx, env, "/v1/agent/model-usage", body)
	if refused, ok := errors.AsType[*DaemonError](err); ok && refused.HTTPStatus == http.StatusForbidden && refused.Code == codeNotAnOperator {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("sdk: report a model's usage: %w", err)
	}
	return true, nil
}

// check refuses what agentd would.
func (u *ModelUsage) check() error {
	for name, text := range map[string]string{"Provider": u.Provider, "Model": u.Model} {
		if text == "" || len(text) > maxModelName || strings.ContainsFunc(text, func(r rune) bool { return !strings.ContainsRune(modelNames, r) }) {
			return fmt.Errorf("sdk: %s of a model's usage is not 1 to %d letters, digits and ._:/@+-", name, maxModelName)
		}
	}
	switch u.Operation {
	case "", "chat", "text_completion", "generate_content", "embeddings":
	default:
		return errors.New("sdk: Operation of a model's usage is none of chat, text_completion, generate_content and embeddings")
	}
	if min(u.InputTokens, u.OutputTokens) < 0 || max(u.InputTokens, u.OutputTokens) > maxModelTokens {
		return fmt.Errorf("sdk: the tokens of a model's usage are not from 0 to %d", maxModelTokens)
	}
	if u.Duration < 0 || u.Duration > time.Hour {
		return errors.New("sdk: Duration of a model's usage is not from 0 to an hour")
	}
	return nil
}

// modelUsage reports what a model used for the call.
func (c *workerCall) modelUsage(ctx context.Context, usage []byte) (taken bool, err error) {
	most := c.worker.at.Limits.MaxModelUsages
	if most == 0 {
		return false, nil
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if n := c.usages.Add(1); n > int64(most) {
		return false, &DaemonError{
			HTTPStatus: http.StatusTooManyRequests, Code: "EAGENTRPC_BUSY",
			Message: fmt.Sprintf("the call has made %d reports of a model's usage, which is as many as it may make", most),
		}
	}
	c.worker.ask(nil, wire.ModelUsage, wire.ModelUsageParams{ID: c.id, Usage: usage})
	return true, nil
}
