package drift

import (
	"errors"
	"fmt"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// An outcome is how a question to a peer ends. The set is closed, and the gate has one
// rule for each of its members, in [peerState.judge].
type outcome int

const (
	// gaveUp: this end withdrew the question. Nothing is kept, and nothing is said
	// about the peer.
	gaveUp outcome = iota
	// unreachable: there is no answer, or one of a peer that publishes nothing, as one
	// that is older than the published form does. Calls go on unproven.
	unreachable
	// malformed: a peer that is there answers nonsense, or refuses to answer. Calls are
	// refused.
	malformed
	// newerMajor: the peer publishes a later, incompatible form. Calls are refused.
	newerMajor
	// answered: the contracts of each capability are compared.
	answered
)

// An answer is what came of one question.
type answer struct {
	outcome outcome
	live    *capability.Published // for answered
	err     error                 // for every other outcome: why
}

// readAnswer classifies the data or the error with which a question ended.
func readAnswer(peer envelope.Address, data []byte, err error) answer {
	if err != nil {
		return answer{outcome: failure(peer, err), err: err}
	}
	live, err := capability.ParsePublished(data)
	var why *capability.PublishedError
	switch {
	case errors.As(err, &why) && why.Absent:
		return answer{outcome: unreachable, err: err}
	case errors.As(err, &why) && why.NewerMajor:
		return answer{outcome: newerMajor, err: err}
	case err != nil:
		return answer{outcome: malformed, err: err}
	case live.Agent != "" && live.Agent != peer:
		return answer{outcome: malformed, err: fmt.Errorf("it answers for %s", live.Agent)}
	}
	return answer{outcome: answered, live: live}
}

// failure classifies a question that got no published form.
func failure(peer envelope.Address, err error) outcome {
	code := rpc.CodeOf(err)
	var e *rpc.Error
	if errors.As(err, &e) && e.DetectedBy == peer { // the peer's own words
		switch code {
		case rpc.CodeBusy, rpc.CodeRateLimited, rpc.CodeDeadlineExceeded, rpc.CodePayloadTooLarge:
			return unreachable // it cannot answer now, or not by this transport
		case rpc.CodeVersionSkew, rpc.CodeTenantMismatch:
			return unreachable // it refuses all calls of this agent, and gives each this reason
		}
		return malformed
	}
	switch code {
	case rpc.CodeCancelled, rpc.CodeAbandoned, rpc.CodeBusy:
		// This process is shutting down, or has too many calls in flight to ask.
		return gaveUp
	}
	return unreachable
}
