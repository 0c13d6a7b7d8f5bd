package check

import (
	"encoding/json"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/rpc"
)

// Unasked refuses an answer of f that asks the client of a call for what the request does not
// say it can be asked for. Whoever calls without such a client gets a result or this error.
func Unasked(f *capability.Capability, request, answer json.RawMessage) *rpc.Error {
	if f == nil || len(f.Asks) == 0 {
		return nil
	}
	kinds := f.Unasked(request, answer)
	if len(kinds) == 0 {
		return nil
	}
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	err := rpc.NewError(rpc.CodeInputRequired, nil, "capability %q asks for %s, and whoever calls it cannot be asked for that: clients of the Model Context Protocol can, which say so",
		f.Name, strings.Join(names, " and "))
	err.Details, _ = json.Marshal(map[string][]string{"asks": names}) // of strings: it cannot fail
	return err
}
