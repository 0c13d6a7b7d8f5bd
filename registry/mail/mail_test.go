package mail_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/internal/smtptest"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/mail"
)

const password = "t0p-secret-password"

// resolve gives an agent the capability with a configuration.
func resolve(t *testing.T, log *slog.Logger, config string) (*registry.Resolved, error) {
	t.Helper()
	known := registry.New()
	if err := known.Register(mail.Resolver{}); err != nil {
		t.Fatal(err)
	}
	agent, err := known.Resolve(registry.Context{Context: t.Context(), Logger: log, Secret: func(_ context.Context, ref string) (string, error) {
		if ref != "env:SMTP_PASSWORD" {
			return "", errors.New("environment variable is not set")
		}
		return password, nil
	}}, []registry.Capability{{Key: "mail", Config: json.RawMessage(config)}})
	if err == nil {
		t.Cleanup(func() { agent.Close(context.WithoutCancel(t.Context())) })
	}
	return agent, err
}

func call(t *testing.T, agent *registry.Resolved, args string) (string, registry.Code) {
	t.Helper()
	result := agent.Call(t.Context(), "send_mail", json.RawMessage(args))
	encoded, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded), registry.FailureCode(result)
}

func config(s *smtptest.Server, more string) string {
	return fmt.Sprintf(`{"server": %q, "tls": "starttls", "caFile": %q, "from": "agent@example.com"%s}`, s.Addr, s.CAFile, more)
}

func TestSendMail(t *testing.T) {
	server := smtptest.Start(t, smtptest.Options{Password: password})
	agent, err := resolve(t, nil, config(server, `, "user": "robot", "password": "env:SMTP_PASSWORD", "recipients": ["*@example.com"]`))
	if err != nil {
		t.Fatal(err)
	}
	if got, code := call(t, agent, `{"to": ["ann@example.com", "bob@example.com"], "subject": "s", "body": "<p>b</p>", "html": true}`); code != "" || !strings.Contains(got, `"messageId"`) {
		t.Fatal(got)
	}
	mails := server.Mails()
	if len(mails) != 1 || !slices.Equal(mails[0].To, []string{"ann@example.com", "bob@example.com"}) || mails[0].User != "robot" || !mails[0].TLS {
		t.Errorf("%+v", mails)
	}
	many := `"ann@example.com"` + strings.Repeat(`, "ann@example.com"`, 9999)
	for name, c := range map[string]struct {
		args string
		want registry.Code
	}{
		"not listed":              {`{"to": ["ann@example.com", "eve@evil.test"], "subject": "s", "body": "b"}`, registry.PermissionDenied},
		"ten thousand recipients": {`{"to": [` + many + `], "subject": "s", "body": "b"}`, registry.InvalidArguments},
		"nobody":                  {`{"to": [], "subject": "s", "body": "b"}`, registry.InvalidArguments},
		"CRLF in to":              {`{"to": ["ann@example.com\r\nBcc: eve@evil.test"], "subject": "s", "body": "b"}`, registry.InvalidArguments},
		"CRLF in subject":         {`{"to": ["ann@example.com"], "subject": "s\r\nBcc: eve@evil.test", "body": "b"}`, registry.InvalidArguments},
		"NUL in body":             {`{"to": ["ann@example.com"], "subject": "s", "body": "\u0000"}`, registry.InvalidArguments},
		"a copy":                  {`{"to": ["ann@example.com"], "bcc": ["eve@evil.test"], "subject": "s", "body": "b"}`, registry.InvalidArguments},
		"a sender":                {`{"from": "boss@example.com", "to": ["ann@example.com"], "subject": "s", "body": "b"}`, registry.InvalidArguments},
	} {
		if got, code := call(t, agent, c.args); code != c.want || strings.Contains(got, password) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if n := len(server.Mails()); n != 1 {
		t.Errorf("%d mails", n)
	}
}

// Refusals do not count, recipients do: a mail to three is three mails.
func TestPerHour(t *testing.T) {
	server := smtptest.Start(t, smtptest.Options{})
	agent, err := resolve(t, nil, config(server, `, "perHour": 3`))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		args string
		want registry.Code
	}{
		{`{"to": ["a b"], "subject": "s", "body": "b"}`, registry.InvalidArguments},
		{`{"to": ["a@b.c"], "subject": "s\n", "body": "b"}`, registry.InvalidArguments},
		{`{"to": ["a@b.c", "d@b.c", "e@b.c", "f@b.c"], "subject": "s", "body": "b"}`, registry.TooLarge},
		{`{"to": ["a@b.c", "d@b.c"], "subject": "s", "body": "b"}`, ""},
		{`{"to": ["a@b.c", "d@b.c"], "subject": "s", "body": "b"}`, registry.RateLimitExceeded},
		{`{"to": ["a@b.c"], "subject": "s", "body": "b"}`, ""},
		{`{"to": ["a@b.c"], "subject": "s", "body": "b"}`, registry.RateLimitExceeded},
	} {
		if got, code := call(t, agent, c.args); code != c.want {
			t.Errorf("%d: %s, want %q", i, got, c.want)
		}
	}
	if n := len(server.Mails()); n != 2 {
		t.Errorf("%d mails", n)
	}
}

// What the operator has to mend is in the log with its cause; the model learns no more
// than that it does not work.
func TestServerThatIsNotThere(t *testing.T) {
	var log bytes.Buffer
	agent, err := resolve(t, slog.New(slog.NewTextHandler(&log, nil)), `{"server": "127.0.0.1:1", "from": "agent@example.com"}`)
	if err != nil {
		t.Fatal(err)
	}
	got, code := call(t, agent, `{"to": ["ann@example.com"], "subject": "s", "body": "b"}`)
	if code != registry.Unavailable || strings.Contains(got, "127.0.0.1") {
		t.Error(got)
	}
	if text := log.String(); !strings.Contains(text, "127.0.0.1:1") || strings.Contains(text, "ann@") {
		t.Errorf("the log has %q", text)
	}
}

func TestConfigIsRefused(t *testing.T) {
	for config, want := range map[string]string{
		`{}`:                             "from",
		`{"server": "mail.example.com"}`: "from",
		`{"server": "mail.example.com", "from": "agent"}`:                                         "from: it is no address",
		`{"server": "mail.example.com", "from": "a@b.c", "tls": "none"}`:                          "without TLS to localhost",
		`{"server": "mail.example.com", "from": "a@b.c", "tls": "maybe"}`:                         "tls",
		`{"server": "mail.example.com", "from": "a@b.c", "recipients": []}`:                       "recipients",
		`{"server": "mail.example.com", "from": "a@b.c", "recipients": ["*"]}`:                    "recipients[0]",
		`{"server": "mail.example.com", "from": "a@b.c", "user": "u", "password": "env:NOTHING"}`: "not set",
		`{"server": "mail.example.com", "from": "a@b.c", "perHour": 0}`:                           "perHour",
		`{"server": "mail.example.com", "from": "a@b.c", "tools": ["send_mail", "read_mail"]}`:    `no tool "read_mail"`,
		`{"server": "mail.example.com", "from": "a@b.c", "to": ["d@e.f"]}`:                        "to",
	} {
		if _, err := resolve(t, nil, config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
}
