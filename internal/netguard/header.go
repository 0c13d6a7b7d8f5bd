package netguard

import (
	"net/http"
	"slices"
	"strings"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/truncate"
)

// maxSentHeaderBytes bounds the headers of one request, names and values together.
const maxSentHeaderBytes = 16 << 10

// sentHeader checks the headers that the caller asks for.
func sentHeader(asked map[string]string) (http.Header, error) {
	h := http.Header{}
	size := 0
	for name, value := range asked {
		size += len(name) + len(value)
		switch {
		case !isToken(name):
			return nil, failure.Errorf(failure.InvalidArgument, "%s is no name of a header", truncate.Quote(name))
		case isReserved(name):
			return nil, failure.Errorf(failure.InvalidArgument, "the header %s is set by the client and cannot be chosen", truncate.Quote(name))
		case !isFieldValue(value):
			return nil, failure.Errorf(failure.InvalidArgument, "the value of the header %s has control characters", truncate.Quote(name))
		case h[http.CanonicalHeaderKey(name)] != nil:
			return nil, failure.Errorf(failure.InvalidArgument, "the header %s is there twice, in upper and lower case", truncate.Quote(name))
		case size > maxSentHeaderBytes:
			return nil, failure.Errorf(failure.InvalidArgument, "the headers have more than %d bytes", maxSentHeaderBytes)
		}
		h.Set(name, value)
	}
	return h, nil
}

// isReserved reports whether a header belongs to the connection, or decides which host
// answers, how the body is to be read, or that a GET is to be taken for something else.
func isReserved(name string) bool {
	name = strings.ToLower(name)
	return strings.HasPrefix(name, "proxy-") || slices.Contains([]string{
		"accept-encoding", "connection", "content-length", "expect", "host", "keep-alive",
		"te", "trailer", "transfer-encoding", "upgrade",
		"x-http-method", "x-http-method-override", "x-method-override",
	}, name)
}

// followsRedirect reports whether a header of the caller may go to another origin than
// the one it was meant for. Everything else may be a credential: there is no list of
// the names that services have for their keys.
func followsRedirect(name string) bool {
	return name == "Accept" || name == "Accept-Language" || name == "User-Agent"
}

// isToken is the grammar of a header's name (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	const allowed = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return s != "" && strings.TrimLeft(s, allowed) == ""
}

// isFieldValue refuses what could end a header or begin another: everything below a
// space but tabs, and DEL.
func isFieldValue(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && c != '\t' || c == '\x7f' })
}
