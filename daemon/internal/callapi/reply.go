package callapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// A fault is the body of a response other than 200.
type fault struct {
	Error faultBody `json:"error"`
}

type faultBody struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// WriteFault responds with an error of the API itself: no call was made.
func WriteFault(w http.ResponseWriter, status int, code, message string) {
	WriteJSON(w, status, fault{Error: faultBody{Code: code, Message: message}})
}

// WriteJSON encodes v before it writes the status, so that a value that cannot be
// encoded becomes a proper error.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // a payload passes through byte for byte
	if err := enc.Encode(v); err != nil {
		status = http.StatusInternalServerError
		body.Reset()
		body.WriteString(`{"error":{"code":"EAGENTRPC_INTERNAL","message":"the response could not be encoded"}}` + "\n")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // fails only when the client has disconnected
}

// RefuseBody responds to a body that could not be read or decoded: 413 to one that is
// too large, which the client may split, and 400 to all others.
func RefuseBody(w http.ResponseWriter, code, expected string, err error) {
	status := http.StatusBadRequest
	text := expected + ": " + err.Error()
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		status = http.StatusRequestEntityTooLarge
		text = fmt.Sprintf("%s: the body is larger than %d KiB", expected, tooLarge.Limit>>10)
	}
	WriteFault(w, status, code, text)
}
