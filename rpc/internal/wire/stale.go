package wire

import (
	"encoding/json"

	"github.com/agentd/agentd/rpc"
)

// staleDetails are the details of CodeSchemaStale.
type staleDetails struct {
	// Digest is that of the capability as the callee serves it.
	Digest string `json:"digest"`
}

// Stale returns the error of a request that was made for another contract of the
// capability name than the callee serves, whose digest is digest.
func Stale(name, digest string) *rpc.Error {
	e := rpc.NewError(rpc.CodeSchemaStale, nil, "the caller was built against another contract of %q", name)
	e.Details, _ = json.Marshal(staleDetails{Digest: digest}) // a string always marshals
	return e
}

// StaleDigest returns the digest in an error that [Stale] made, or "".
func StaleDigest(err *rpc.Error) string {
	var d staleDetails
	if err.Code != rpc.CodeSchemaStale || json.Unmarshal(err.Details, &d) != nil {
		return ""
	}
	return d.Digest
}
