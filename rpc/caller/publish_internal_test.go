package caller

import (
	"errors"
	"testing"

	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/rpc"
)

// A call that this end cannot sign fails for good, unless time or a key that is brought
// here mends it.
func TestSealError(t *testing.T) {
	for _, test := range []struct {
		err       error
		code      rpc.Code
		retryable bool
	}{
		{&identity.Error{Reason: identity.NotYetValid}, rpc.CodeAuthFailed, true},
		{&identity.Error{Reason: identity.Expired}, rpc.CodeAuthFailed, true},
		{&identity.Error{Reason: identity.UnknownKey}, rpc.CodeAuthFailed, true},
		{&identity.Error{Reason: identity.UnknownPeer}, rpc.CodeAuthFailed, false},
		{errors.New("no envelope"), rpc.CodeInvalidRequest, false},
	} {
		if e := sealError(test.err, "agent://peer"); e.Code != test.code || e.Retryable != test.retryable {
			t.Errorf("%v: %s, retryable %v", test.err, e.Code, e.Retryable)
		}
	}
}
