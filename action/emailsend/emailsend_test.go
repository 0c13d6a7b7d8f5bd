package emailsend_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/action"
	"github.com/agentd/agentd/action/emailsend"
	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/mailer"
	"github.com/agentd/agentd/internal/smtptest"
	"github.com/agentd/agentd/schema"
)

func open(t *testing.T, c emailsend.Config) *emailsend.Handler {
	t.Helper()
	h, err := emailsend.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func config(s *smtptest.Server) emailsend.Config {
	return emailsend.Config{Config: mailer.Config{Server: s.Addr, TLS: "starttls", CAFile: s.CAFile, From: "reports@example.com"}}
}

// part compiles a member of the definition that is a schema.
func part(t *testing.T, name string) *schema.Schema {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(emailsend.Definition), &members); err != nil {
		t.Fatal(err)
	}
	s, err := schema.Compile(members[name])
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return s
}

func TestExecute(t *testing.T) {
	server := smtptest.Start(t, smtptest.Options{})
	h := open(t, config(server))
	for params, contentType := range map[string]string{
		`{"to": "ann@example.com", "subject": "plain", "body": "a < b"}`:                 "text/plain",
		`{"to": "ann@example.com", "subject": "html", "body": "<b>b</b>", "html": true}`: "text/html",
	} {
		result, err := h.Execute(t.Context(), json.RawMessage(params))
		if err != nil {
			t.Fatal(err)
		}
		if v := part(t, "returns").Validate(result); len(v) > 0 {
			t.Errorf("the result %s fails the definition: %v", result, v)
		}
		mails := server.Mails()
		got := mails[len(mails)-1]
		if !slices.Equal(got.To, []string{"ann@example.com"}) || !strings.Contains(string(got.Data), "Content-Type: "+contentType) {
			t.Errorf("%s: %+v\n%s", params, got, got.Data)
		}
	}
}

// The adversarial table: each is an error for the caller, and nothing is sent. A good
// part of it fails the definition's schema before that.
func TestRefuses(t *testing.T) {
	server := smtptest.Start(t, smtptest.Options{})
	h := open(t, config(server))
	parameters := part(t, "parameters")
	many := strings.Repeat("ann@example.com,", 10_000)
	for name, c := range map[string]struct {
		to, subject, body string
		schema            bool // refuses it as well
	}{
		"CRLF in to":            {"ann@example.com\r\nBcc: eve@evil.test", "s", "b", true},
		"LF in to":              {"ann@example.com\n", "s", "b", true},
		"NUL in to":             {"ann\x00@example.com", "s", "b", true},
		"a name in to":          {"Ann <ann@example.com>", "s", "b", true},
		"two in to":             {"ann@example.com, bob@example.com", "s", "b", true},
		"ten thousand in to":    {many, "s", "b", true},
		"a quoted to":           {`"eve@evil.test "@example.com`, "s", "b", false},
		"an address literal":    {"root@[127.0.0.1]", "s", "b", false},
		"a route in to":         {"eve%evil.test@example.com", "s", "b", false},
		"CRLF in subject":       {"ann@example.com", "s\r\nBcc: eve@evil.test", "b", false},
		"CR in subject":         {"ann@example.com", "s\rBcc: eve@evil.test", "b", false},
		"LF in subject":         {"ann@example.com", "s\nBcc: eve@evil.test", "b", false},
		"a body in the subject": {"ann@example.com", "s\r\n\r\nbody", "b", false},
		"NUL in subject":        {"ann@example.com", "s\x00", "b", false},
		"a subject without end": {"ann@example.com", strings.Repeat("s", 1<<20), "b", true},
		"NUL in body":           {"ann@example.com", "s", "b\x00", false},
		"a body without end":    {"ann@example.com", "s", strings.Repeat("b", 1<<20+1), false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, html := range []bool{false, true} {
				params, err := json.Marshal(map[string]any{"to": c.to, "subject": c.subject, "body": c.body, "html": html})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := h.Execute(t.Context(), params); failure.As(err) == nil || failure.As(err).Code.Retryable() {
					t.Errorf("got %v", err)
				}
				if refused := len(parameters.Validate(params)) > 0; refused != c.schema {
					t.Errorf("the definition refuses it: %v", refused)
				}
			}
		})
	}
	for name, params := range map[string]string{
		"no recipient":  `{"subject": "s", "body": "b"}`,
		"another field": `{"to": "ann@example.com", "subject": "s", "body": "b", "bcc": "eve@evil.test"}`,
		"a list":        `{"to": ["ann@example.com"], "subject": "s", "body": "b"}`,
		"null":          `{"to": null, "subject": "s", "body": "b"}`,
	} {
		if len(parameters.Validate([]byte(params))) == 0 {
			t.Errorf("%s: the definition accepts it", name)
		}
	}
	if _, err := h.Execute(t.Context(), json.RawMessage(`[]`)); failure.As(err) == nil {
		t.Error(err)
	}
	if n := len(server.Mails()); n > 0 {
		t.Errorf("%d mails were sent", n)
	}
}

// Ten an hour, for each user: the eleventh mail of an hour is not sent.
func TestTenAnHour(t *testing.T) {
	server := smtptest.Start(t, smtptest.Options{})
	h := open(t, config(server))
	definition, err := action.Parse([]byte(emailsend.Definition))
	if err != nil {
		t.Fatal(err)
	}
	known := action.New(action.Options{})
	if err := known.Register(definition, func(ctx context.Context, params json.RawMessage, _ action.Context) (json.RawMessage, error) {
		return h.Execute(ctx, params)
	}); err != nil {
		t.Fatal(err)
	}
	params := json.RawMessage(`{"to": "ann@example.com", "subject": "s", "body": "b"}`)
	user := action.Context{User: action.User{ID: "u", Permissions: []string{"email:send"}}}
	for i := range 10 {
		if result, err := known.Execute(t.Context(), "email-send", params, user); err != nil || !result.Success {
			t.Fatalf("mail %d: %v, %+v", i+1, err, result)
		}
	}
	_, err = known.Execute(t.Context(), "email-send", params, user)
	if e := action.As(err); e == nil || e.Code != action.RateLimitExceeded || len(server.Mails()) != 10 {
		t.Errorf("%v; %d mails", err, len(server.Mails()))
	}
	user.User = action.User{ID: "v", Permissions: []string{"http:read"}}
	_, err = known.Execute(t.Context(), "email-send", params, user)
	if e := action.As(err); e == nil || e.Code != action.PermissionDenied {
		t.Error(err)
	}
}

func TestConfiguration(t *testing.T) {
	s, err := schema.Compile([]byte(emailsend.ConfigSchema))
	if err != nil {
		t.Fatal(err)
	}
	for config, valid := range map[string]bool{
		`{"server": "mail.example.com", "from": "a@b.c"}`: true,
		`{"server": "mail.example.com:465", "tls": "tls", "caFile": "/x", "user": "u", "password": "env:P", "from": "a@b.c", "replyTo": "d@b.c",
		  "recipients": ["*@b.c"], "maxRecipients": 1, "maxBytes": 1000, "timeoutMs": 1000}`: true,
		`{"from": "a@b.c"}`: false,
		`{"server": "mail.example.com", "from": "a@b.c", "recipients": []}`:       false,
		`{"server": "mail.example.com", "from": "a@b.c", "tls": "opportunistic"}`: false,
		`{"server": "mail.example.com", "from": "a@b.c", "insecure": true}`:       false,
	} {
		if got := len(s.Validate([]byte(config))) == 0; got != valid {
			t.Errorf("%s: valid %v", config, got)
		}
	}
	lost := errors.New("no such variable")
	_, err = emailsend.New(emailsend.Config{
		Config: mailer.Config{Server: "mail.example.com", User: "u", Password: "env:P", From: "a@b.c"},
		Secret: func(string) (string, error) { return "", lost },
	})
	if !errors.Is(err, lost) || !strings.HasPrefix(err.Error(), "email-send: ") {
		t.Error(err)
	}
}
