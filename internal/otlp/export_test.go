package otlp

import "net/http"

// Answer judges the body of a good answer.
func Answer(body []byte, grpc bool) {
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Trailer: http.Header{"Grpc-Status": {"0"}}}
	if grpc {
		_, _ = grpcAnswer(resp, body)
		return
	}
	_, _ = httpAnswer(resp, body)
}
