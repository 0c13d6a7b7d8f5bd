package notification_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/agentd/agentd/action"
	"github.com/agentd/agentd/action/notification"
	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/mailer"
	"github.com/agentd/agentd/internal/notifier"
	"github.com/agentd/agentd/internal/smtptest"
	"github.com/agentd/agentd/schema"
)

// The result is what the definition says, and the parameters are the definition's.
func TestExecute(t *testing.T) {
	definition, err := action.Parse([]byte(notification.Definition))
	if err != nil {
		t.Fatal(err)
	}
	parameters, err := schema.Compile(definition.Parameters)
	if err != nil {
		t.Fatal(err)
	}
	returns, err := schema.Compile(definition.Returns)
	if err != nil {
		t.Fatal(err)
	}
	server := smtptest.Start(t, smtptest.Options{})
	h, err := notification.New(notification.Config{Config: notifier.Config{Email: &notifier.EmailConfig{
		Config: mailer.Config{Server: server.Addr, TLS: "starttls", CAFile: server.CAFile, From: "agent@example.com"},
		To:     []string{"ann@example.com"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, params := range []string{`{"message": "x"}`, `{"message": "x", "channel": "email"}`} {
		if v := parameters.Validate([]byte(params)); len(v) > 0 {
			t.Errorf("%s: %v", params, v)
		}
		result, err := h.Execute(t.Context(), json.RawMessage(params))
		if err != nil || string(result) != `{"channel":"email","status":"accepted"}` || len(returns.Validate(result)) > 0 {
			t.Errorf("%s: %s, %v", params, result, err)
		}
	}
	if n := len(server.Mails()); n != 2 {
		t.Errorf("%d mails", n)
	}
	for _, channel := range []string{"sms", "push", "webhook"} {
		params := fmt.Sprintf(`{"message": "x", "channel": %q}`, channel)
		_, err := h.Execute(t.Context(), json.RawMessage(params))
		if e := failure.As(err); e == nil || e.Code != failure.Unsupported || !strings.Contains(e.Text, "it has: email") || len(parameters.Validate([]byte(params))) > 0 {
			t.Errorf("%s: %v", channel, err)
		}
	}
	for name, params := range map[string]string{
		"no message":    `{"channel": "email"}`,
		"empty":         `{"message": ""}`,
		"another field": `{"message": "x", "to": "eve@evil.test"}`,
		"no channel":    `{"message": "x", "channel": "fax"}`,
		"too long":      fmt.Sprintf(`{"message": %q}`, strings.Repeat("x", 4001)),
	} {
		if len(parameters.Validate([]byte(params))) == 0 {
			t.Errorf("%s: the definition accepts it", name)
		}
	}
	if _, err := h.Execute(t.Context(), json.RawMessage(`"x"`)); failure.As(err) == nil {
		t.Error(err)
	}
}

func TestConfiguration(t *testing.T) {
	s, err := schema.Compile([]byte(notification.ConfigSchema))
	if err != nil {
		t.Fatal(err)
	}
	for config, valid := range map[string]bool{
		`{"email": {"server": "mail.example.com", "from": "a@b.c", "to": ["d@b.c"]}}`:                                        true,
		`{"sms": {"url": "env:SMS", "format": "form", "body": {"Body": "{message}"}, "credentials": [{"secret": "env:T"}]}}`: true,
		`{"push": {"url": "https://h.example.com"}, "webhook": {"url": "https://h.example.com"}, "default": "push"}`:         true,
		`{"email": {"server": "mail.example.com", "from": "a@b.c"}}`:                                                         false,
		`{"sms": {}}`:                           false,
		`{"fax": {"url": "x"}}`:                 false,
		`{"sms": {"url": "x", "hosts": ["y"]}}`: false,
	} {
		if got := len(s.Validate([]byte(config))) == 0; got != valid {
			t.Errorf("%s: valid %v", config, got)
		}
	}
	lost := errors.New("no such variable")
	_, err = notification.New(notification.Config{
		Config: notifier.Config{Push: &notifier.WebhookConfig{URL: "env:HOOK"}},
		Secret: func(string) (string, error) { return "", lost },
	})
	if !errors.Is(err, lost) || !strings.HasPrefix(err.Error(), "send-notification: push: url: ") {
		t.Error(err)
	}
}
