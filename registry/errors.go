package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/schema"
)

// A Code says what kind of error a tool answers with. The set is closed.
type Code string

// The codes of tools.
const (
	InvalidArguments  Code = "invalid_arguments"   // the arguments break the tool's schema or its rules
	NotFound          Code = "not_found"           // what the arguments name is not there
	PermissionDenied  Code = "permission_denied"   // the agent was not granted this
	Conflict          Code = "conflict"            // the state does not allow this, such as a task that is taken
	TooLarge          Code = "too_large"           // an argument, a file or an answer is beyond its bound
	RateLimitExceeded Code = "rate_limit_exceeded" // too many calls
	Timeout           Code = "timeout"             // there was no answer in time
	Canceled          Code = "canceled"            // the caller went away
	NetworkError      Code = "network_error"       // another host did not answer as it should
	Unavailable       Code = "unavailable"         // what the tool needs is not there at the moment
	Unsupported       Code = "unsupported"         // the tool cannot do this, here or at all
	Failed            Code = "failed"              // what was asked for was tried, and failed; the message says why
	Internal          Code = "internal"            // any other error; the log has it
)

// An Error is what a tool tells its caller. Its text is shown as it is, so it is made
// by the tool: never from an internal error, a secret, or a path that the caller does
// not know.
type Error struct {
	Code    Code
	Message string
	// Retryable says that the same call may succeed later.
	Retryable bool
	// Violations say what is wrong with the arguments, where Code is InvalidArguments.
	Violations []schema.Violation
	// Details are a JSON object that depends on the code, or nil: those of
	// RateLimitExceeded are {error, message, retry_after_seconds, limit, remaining,
	// reset_at}.
	Details json.RawMessage
}

// Error returns the code and the message.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Errorf returns an [*Error]. It is retryable where its code is one that time may
// mend.
func Errorf(code Code, format string, args ...any) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Retryable: retryable(code)}
}

func retryable(code Code) bool {
	return code == RateLimitExceeded || code == Timeout || code == NetworkError || code == Unavailable
}

// invalid is the error for arguments that break their schema.
func invalid(violations []schema.Violation) *Error {
	return &Error{
		Code: InvalidArguments, Violations: violations,
		Message: ViolationText("the arguments do not fit the tool's input schema", violations),
	}
}

// ViolationText lists violations below a line that says what they are about, because a
// model reads no other part of an error.
func ViolationText(about string, violations []schema.Violation) string {
	var b strings.Builder
	b.WriteString(about)
	const shown = 20
	for _, v := range violations[:min(len(violations), shown)] {
		path := v.Path
		if path == "" {
			path = "/"
		}
		fmt.Fprintf(&b, "\n%s: %s", path, v.Message)
	}
	if more := len(violations) - shown; more > 0 {
		fmt.Fprintf(&b, "\nand %d more", more)
	}
	return b.String()
}

// shown turns the error of a handler into the one that the caller may see.
// unexpected says that the caller learns nothing of it, so that the log has to.
func shown(err error) (e *Error, unexpected bool) {
	switch {
	case errors.As(err, &e):
		return e, false
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: Timeout, Message: "there was no answer in time", Retryable: true}, false
	case errors.Is(err, context.Canceled):
		return &Error{Code: Canceled, Message: "the call was canceled"}, false
	}
	return &Error{Code: Internal, Message: "internal error"}, true
}

// errorMeta is the key of a result's metadata that has the error for programs.
const errorMeta = "io.agentd/error"

// Failure returns the result by which a tool tells its caller of an error: text for a
// model, and the same as data under _meta.
func Failure(e *Error) *mcp.CallToolResult {
	data := map[string]any{"code": e.Code, "message": e.Message, "retryable": e.Retryable}
	if len(e.Violations) > 0 {
		data["violations"] = e.Violations
	}
	if e.Details != nil {
		data["details"] = e.Details
	}
	return &mcp.CallToolResult{
		IsError: true,
		Content: []mcp.Content{&mcp.TextContent{Text: e.Error()}},
		Meta:    mcp.Meta{errorMeta: data},
	}
}

// FailureCode returns the code of a result that [Failure] made in this process, and ""
// for a result that is no error.
func FailureCode(r *mcp.CallToolResult) Code {
	if r == nil || !r.IsError {
		return ""
	}
	if data, ok := r.Meta[errorMeta].(map[string]any); ok {
		switch code := data["code"].(type) {
		case Code:
			return code
		case string: // it has travelled
			return Code(code)
		}
	}
	return Internal
}
