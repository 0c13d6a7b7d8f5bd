package control

import (
	"io"
	"net/http"

	"github.com/agentd/agentd/daemon/internal/callapi"
)

// This API reads and responds as that of the skills does; see [callapi].

func decodeStrict(r io.Reader, into any) error { return callapi.DecodeStrict(r, into) }

func writeJSON(w http.ResponseWriter, status int, v any) { //nolint:unparam // as callapi's, which faults use with others
	callapi.WriteJSON(w, status, v)
}

func writeFault(w http.ResponseWriter, status int, code, message string) {
	callapi.WriteFault(w, status, code, message)
}

func refuseBody(w http.ResponseWriter, code, expected string, err error) {
	callapi.RefuseBody(w, code, expected, err)
}
