package control

import (
	_ "embed"
	"net/http"
)

// description is this API in the words of OpenAPI 3.1: package internal/reference writes it.
//
//go:embed openapi.json
var description []byte

// openapi handles GET /v1/openapi.json.
func openapi(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(description)
}
