package notifier

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/mailer"
	"github.com/agentd/agentd/internal/truncate"
)

// MaxMessage is the length of the longest message, in characters.
const MaxMessage = 4000

// A Notifier sends notifications. It is safe for concurrent use.
type Notifier struct {
	names    []string // of the channels, in the order of the constants
	channels map[string]channel
	standard string // the channel of callers that name none; "" if there is none
}

// A channel is one way to people.
type channel interface {
	// check reports what stands against a text without sending it.
	check(text string) error
	send(ctx context.Context, text string) error
	close()
}

// A Message is what a caller wants to be sent.
type Message struct {
	Channel string // the configured default if empty
	Text    string
}

// A Receipt says what became of a message.
type Receipt struct {
	Channel string `json:"channel"` // that which has taken the message
	Status  string `json:"status"`  // always "accepted": whether anybody reads it, nobody knows
}

// ReceiptSchema is the JSON Schema of a [Receipt].
const ReceiptSchema = `{
  "type": "object",
  "properties": {
    "channel": {"type": "string", "enum": ["email", "webhook", "sms", "push"]},
    "status": {"type": "string", "enum": ["accepted"]}
  },
  "required": ["channel", "status"],
  "additionalProperties": false
}`

// Channels returns the names of the configured channels.
func (n *Notifier) Channels() []string { return slices.Clone(n.names) }

// Default returns the channel of callers that name none, or "".
func (n *Notifier) Default() string { return n.standard }

// Close closes the connections that are kept for later messages.
func (n *Notifier) Close() {
	for _, c := range n.channels {
		c.close()
	}
}

// Check reports what stands against a message without sending it. Its errors are
// [failure.Error].
func (n *Notifier) Check(m Message) error {
	_, err := n.choose(m)
	return err
}

// Send sends a message. Errors are [failure.Error].
func (n *Notifier) Send(ctx context.Context, m Message) (Receipt, error) {
	name, err := n.choose(m)
	if err != nil {
		return Receipt{}, err
	}
	if err := n.channels[name].send(ctx, m.Text); err != nil {
		return Receipt{}, err
	}
	return Receipt{Channel: name, Status: "accepted"}, nil
}

// choose returns the name of the channel that a message is for.
func (n *Notifier) choose(m Message) (string, error) {
	name := cmp.Or(m.Channel, n.standard)
	switch {
	case name == "":
		return "", failure.Errorf(failure.InvalidArgument, "name a channel: %s", strings.Join(n.names, ", "))
	case n.channels[name] == nil:
		return "", failure.Errorf(failure.Unsupported, "this agent has no channel %s; it has: %s", truncate.Quote(name), strings.Join(n.names, ", "))
	case m.Text == "":
		return "", failure.Errorf(failure.InvalidArgument, "the message is empty")
	case len(m.Text) > MaxMessage && utf8.RuneCountInString(m.Text) > MaxMessage:
		return "", failure.Errorf(failure.TooLarge, "the message has more than %d characters", MaxMessage)
	case !utf8.ValidString(m.Text) || strings.ContainsFunc(m.Text, isUnprintable):
		return "", failure.Errorf(failure.InvalidArgument, "the message has control characters other than line breaks and tabs")
	}
	return name, n.channels[name].check(m.Text)
}

func isUnprintable(c rune) bool {
	return c < ' ' && c != '\n' && c != '\r' && c != '\t' || c == 0x7f
}

// email is the channel [Email].
type email struct {
	mailer  *mailer.Mailer
	to      []string
	subject string
}

func newEmail(c EmailConfig, secret func(ref string) (string, error)) (*email, error) {
	// The operator's own list is as long as it is.
	c.MaxRecipients = max(c.MaxRecipients, len(c.To))
	m, err := mailer.New(c.Config, secret)
	if err != nil {
		return nil, err
	}
	e := &email{mailer: m, to: c.To, subject: cmp.Or(c.Subject, "Notification")}
	return e, m.Check(e.message("text"))
}

func (e *email) message(text string) mailer.Message {
	return mailer.Message{To: e.to, Subject: e.subject, Body: text}
}

func (e *email) check(text string) error { return e.mailer.Check(e.message(text)) }

func (e *email) send(ctx context.Context, text string) error {
	_, err := e.mailer.Send(ctx, e.message(text))
	return err
}

func (e *email) close() {}
