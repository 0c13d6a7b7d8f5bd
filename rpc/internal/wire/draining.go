package wire

import (
	"encoding/json"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/rpc"
)

// drainingDetails are the details of CodeBusy from a callee that is shutting down.
type drainingDetails struct {
	Draining bool `json:"draining"`
}

// Draining returns the error of a request that callee has not begun, and will not,
// because it is shutting down.
func Draining(callee envelope.Address) *rpc.Error {
	e := rpc.NewError(rpc.CodeBusy, nil, "%s is shutting down", callee)
	e.Details, _ = json.Marshal(drainingDetails{Draining: true}) // a bool always marshals
	return e
}

// IsDraining reports whether err is one that [Draining] made.
func IsDraining(err *rpc.Error) bool {
	var d drainingDetails
	return err.Code == rpc.CodeBusy && json.Unmarshal(err.Details, &d) == nil && d.Draining
}
