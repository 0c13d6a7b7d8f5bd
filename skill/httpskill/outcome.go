package httpskill

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/netguard"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/rpc"
)

const (
	// maxDepth bounds how deeply an answer is nested.
	maxDepth = 512
	// maxMessageBytes bounds what the caller sees of a service's own words, and maxLogged what
	// the log has of a body that is not for the caller.
	maxMessageBytes = 2048
	maxLogged       = 1024
)

// outcome turns a whole response into the answer of the call, or its error.
func outcome(r *netguard.Response, now time.Time) (json.RawMessage, error) {
	switch {
	case r.Status == http.StatusNoContent || r.Status == http.StatusResetContent:
		return json.RawMessage("null"), nil
	case r.Status >= 200 && r.Status < 300:
		return answer(r)
	case r.Status >= 300 && r.Status < 400:
		return nil, &rpc.SkillError{Message: fmt.Sprintf("the skill's service answered with a redirect (status %d), which is not followed", r.Status), Failure: "redirect"}
	}
	out := &rpc.SkillError{Message: fmt.Sprintf("the skill's service failed with status %d", r.Status), Failure: "status", Err: logged(r)}
	later := r.Status == http.StatusTooManyRequests || r.Status == http.StatusServiceUnavailable
	if later {
		out.Retryable, out.RetryIn = true, retryAfter(r.Header.Get("Retry-After"), now)
	}
	// What other failures of a service have in their bodies is not written for callers.
	if r.Status < 500 || later {
		if text, retryable := said(r); text != "" {
			out.Message, out.Retryable = text, retryable || later
		}
	}
	return nil, out
}

// answer returns the body if it is exactly one JSON value, and says so.
func answer(r *netguard.Response) (json.RawMessage, error) {
	bad := func(format string, args ...any) (json.RawMessage, error) {
		return nil, &rpc.SkillError{Code: rpc.CodeBadSkillOutput, Message: fmt.Sprintf(format, args...), Err: logged(r)}
	}
	body := bytes.TrimSpace(r.Body)
	switch {
	case len(body) == 0:
		return bad("the skill's service answered with status %d and no body", r.Status)
	case !isJSON(r.MediaType):
		return bad("the skill's service answered with the type %s, and not application/json", truncate.Quote(r.MediaType))
	}
	if err := ijson.Check(body, maxDepth); err != nil {
		return bad("the skill's service answered with what is not one JSON value")
	}
	return body, nil
}

func isJSON(media string) bool {
	return media == "application/json" || strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")
}

// said is what a service says to the caller of a failure: {"error":{"message","retryable"}}.
func said(r *netguard.Response) (text string, retryable bool) {
	var body struct {
		Error struct {
			Message   string `json:"message"`
			Retryable bool   `json:"retryable"`
		} `json:"error"`
	}
	if !isJSON(r.MediaType) || ijson.Check(bytes.TrimSpace(r.Body), maxDepth) != nil || json.Unmarshal(r.Body, &body) != nil {
		return "", false
	}
	text = body.Error.Message
	return strings.ToValidUTF8(text[:min(len(text), maxMessageBytes)], ""), body.Error.Retryable
}

// logged is what the log has of a response that failed a call.
func logged(r *netguard.Response) error {
	if len(r.Body) == 0 {
		return fmt.Errorf("status %d, no body", r.Status)
	}
	return fmt.Errorf("status %d, %s, %d bytes: %.*q", r.Status, truncate.Quote(r.MediaType), len(r.Body), maxLogged, r.Body[:min(len(r.Body), maxLogged)])
}

// retryAfter reads the header Retry-After: seconds, or a date. What cannot be read says nothing.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, rpc.MaxTimeout)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), rpc.MaxTimeout)
}
