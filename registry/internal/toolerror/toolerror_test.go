package toolerror_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/internal/toolerror"
)

// The caller sees the text and the code, the operator's log the cause of what the
// operator has to mend.
func TestHandler(t *testing.T) {
	cause := errors.New("the cause")
	for _, row := range []struct {
		err            error
		code           registry.Code
		shown, retried bool
		logged         bool
	}{
		{failure.Errorf(failure.Unavailable, "shown").Because(cause), registry.Unavailable, true, true, true},
		{failure.Errorf(failure.Network, "shown").Because(cause), registry.NetworkError, true, true, false},
		{failure.Errorf(failure.InvalidArgument, "shown").Because(cause), registry.InvalidArguments, true, false, false},
		{failure.Errorf(failure.NotAllowed, "shown"), registry.PermissionDenied, true, false, false},
		{failure.Errorf(failure.NotFound, "shown"), registry.NotFound, true, false, false},
		{failure.Errorf(failure.TooLarge, "shown"), registry.TooLarge, true, false, false},
		{failure.Errorf(failure.Unsupported, "shown"), registry.Unsupported, true, false, false},
		{failure.Errorf(failure.Timeout, "shown"), registry.Timeout, true, true, false},
		{failure.Errorf(failure.Cancelled, "shown"), registry.Canceled, true, false, false},
		{cause, "", false, false, false},
	} {
		var log bytes.Buffer
		h := toolerror.Handler(slog.New(slog.NewTextHandler(&log, nil)), "x", func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return nil, row.err
		})
		_, err := h(t.Context(), nil)
		var e *registry.Error
		if errors.As(err, &e) != row.shown || e != nil && (e.Code != row.code || e.Message != "shown" || e.Retryable != row.retried) {
			t.Errorf("%v became %v", row.err, err)
		}
		if strings.Contains(log.String(), "the cause") != row.logged {
			t.Errorf("%v: the log has %q", row.err, log.String())
		}
	}
}
