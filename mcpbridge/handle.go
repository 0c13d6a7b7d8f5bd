package mcpbridge

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/agentd/agentd/capability"
)

// A handleKind is where the outcome of a call is to be found.
type handleKind string

const (
	// parkedCall is one of this process, by the id of its flight.
	parkedCall handleKind = "p"
	// queuedCall is one that a durable queue keeps, by its correlation id.
	queuedCall handleKind = "q"
)

// A handle names a call to the client that made it, also as the id of a task:
// <kind>.<seconds>.<id>.<tool>.<code>. It is text that a model copies, and what somebody
// else's client shows is no handle: the code is made with the client's name and the
// bridge's secret.
type handle struct {
	kind  handleKind
	begun time.Time // in whole seconds
	id    string
	tool  string
}

func (f *face) handleText(h handle) string {
	body := strings.Join([]string{string(h.kind), strconv.FormatInt(h.begun.Unix(), 36), h.id, h.tool}, ".")
	return body + "." + f.code("handle", body)
}

// parseHandle returns the handle that text is, if it is one of the client's own.
func (f *face) parseHandle(text string) (h handle, ok bool) {
	const most = 512
	end := strings.LastIndexByte(text, '.')
	if end < 0 || len(text) > most || !hmac.Equal([]byte(text[end+1:]), []byte(f.code("handle", text[:end]))) {
		return h, false
	}
	parts := strings.Split(text[:end], ".")
	if len(parts) != 4 {
		return h, false
	}
	seconds, err := strconv.ParseInt(parts[1], 36, 64)
	return handle{kind: handleKind(parts[0]), begun: time.Unix(seconds, 0), id: parts[2], tool: parts[3]}, err == nil
}

// code authenticates text of this client for one purpose.
func (f *face) code(purpose, text string) string {
	const bytes = 15 // 120 bits, in 24 characters
	sum := f.sum(purpose, text)
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:bytes]))
}

func (f *face) sum(purpose, text string) []byte {
	mac := hmac.New(sha256.New, f.bridge.opts.Secret)
	// No name of a client has a zero byte, and no purpose.
	mac.Write([]byte("agentd mcp " + purpose + "\x00" + f.client.Name + "\x00" + text))
	return mac.Sum(nil)
}

// A state is what a client carries from one round of a request to the next. It says which
// call of this client the request has begun, and binds it to the request's tool and
// arguments. Whoever repeats it gets the outcome of that one call again; nothing runs
// twice. It is signed, and not encrypted.
type state struct {
	Flight  string `json:"f,omitempty"` // the call, where it goes on meanwhile
	Round   *round `json:"q,omitempty"` // what was asked, where another call is to follow
	Request string `json:"r"`           // the digest of the tool and its arguments
	Expires int64  `json:"e"`           // in ms since 1970
}

func (f *face) stateText(s state) string {
	body, _ := json.Marshal(s) // strings and a number cannot fail
	text := base64.RawURLEncoding.EncodeToString(body)
	return text + "." + base64.RawURLEncoding.EncodeToString(f.sum("state", text))
}

// parseState returns the state that text is, if it is the client's own, for this request,
// and in time.
func (f *face) parseState(text, request string, now time.Time) (s state, ok bool) {
	const most = 4 * capability.MaxInputBytes // base64 of JSON that has escaped it
	body, code, found := strings.Cut(text, ".")
	sum, err := base64.RawURLEncoding.Strict().DecodeString(code)
	if !found || len(text) > most || err != nil || !hmac.Equal(sum, f.sum("state", body)) {
		return s, false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return s, false
	}
	return s, s.Request == request && now.UnixMilli() < s.Expires
}

// requestDigest names a tool with arguments, whatever the white space between them.
func requestDigest(tool string, args json.RawMessage) string {
	h := sha256.New()
	h.Write([]byte("tools/call\x00" + tool + "\x00"))
	h.Write(compacted(args))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
