package callapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"time"

	"github.com/agentd/agentd/rpc"
)

// A Request is the body of POST /v1/request.
type Request struct {
	rpc.Request
	// standard says that the request has names of the ARAL standard, such as
	// capability_id. Its result has the standard's names too then, beside the usual ones.
	standard bool
}

// result is what the client gets for the result of its call.
func (q *Request) result(r *rpc.Result) json.Marshaler {
	if q.standard && r != nil {
		return standardResult{r}
	}
	return r
}

// isStandard reports whether a member of a request has a name of the ARAL standard. The
// one for the timeout alone does not make a request the standard's.
func isStandard(name []byte) bool {
	return bytes.Equal(name, []byte("capability_id")) || bytes.Equal(name, []byte("parameters"))
}

// A standardResult is a result with what the ARAL standard calls its parts. The member
// error has the same name and form in both.
type standardResult struct{ *rpc.Result }

// MarshalJSON adds success, result, execution_time_ms and cost_estimate.
func (r standardResult) MarshalJSON() ([]byte, error) {
	own, err := r.Result.MarshalJSON()
	if err != nil {
		return nil, err
	}
	success := r.Status == rpc.StatusOK
	out := struct {
		Success         bool               `json:"success"`
		Result          json.RawMessage    `json:"result,omitempty"`
		ExecutionTimeMS int64              `json:"execution_time_ms"` // rounded up
		CostEstimate    map[string]float64 `json:"cost_estimate,omitempty"`
	}{Success: success, CostEstimate: r.CostEstimate}
	// Without a skill that ran, the whole call is all that can be measured.
	took := cmp.Or(r.ExecutionTime, r.Latency)
	out.ExecutionTimeMS = int64((took + time.Millisecond - 1) / time.Millisecond)
	if success {
		out.Result = r.Response
	}
	var more bytes.Buffer
	enc := json.NewEncoder(&more)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return nil, err
	}
	own[len(own)-1] = ',' // in place of the brace: both are objects with members
	return append(own, bytes.TrimSpace(more.Bytes())[1:]...), nil
}
