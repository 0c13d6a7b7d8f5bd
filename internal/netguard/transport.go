package netguard

import "net/http"

// Transport returns the part of the client that sends one request, for protocols whose
// answers are streams. URL, address and credentials are the client's affair, as in [Client.Do];
// what the caller sends, redirects, time and the bytes of the answer are the caller's.
// Errors are [failure.Error].
func (c *Client) Transport() http.RoundTripper { return streamer{c} }

type streamer struct{ c *Client }

// RoundTrip implements [http.RoundTripper].
func (s streamer) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	if err := s.c.judge(out.URL); err != nil {
		return nil, closing(req, err)
	}
	out.Host = ""
	out.Header.Set("Accept-Encoding", "identity")
	if err := s.c.authorize(out); err != nil {
		return nil, closing(req, err)
	}
	resp, err := s.c.transport.RoundTrip(out)
	if err != nil {
		return nil, translate(req.Context(), err)
	}
	return resp, nil
}

// closing closes the body of a request that is not sent, as a RoundTripper has to.
func closing(req *http.Request, err error) error {
	if req.Body != nil {
		_ = req.Body.Close() // the request has failed already
	}
	return err
}

// Redact takes the operator's secrets out of a part of an answer.
func (c *Client) Redact(part []byte) []byte {
	r := Response{Body: part}
	c.redact(&r)
	return r.Body
}

// Redact takes secrets out of a part of an answer, in the forms in which answers write them. It is
// for those that come and go while a client is in use.
func Redact(part []byte, secrets []string) []byte {
	c := Client{rules: rules{secrets: forms(secrets)}}
	return c.Redact(part)
}
