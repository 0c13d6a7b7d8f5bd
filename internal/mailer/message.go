package mailer

import (
	"crypto/rand"
	"encoding/base64"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/wneessen/go-mail"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/truncate"
)

// maxSubjectBytes is the longest line of a mail (RFC 5322, section 2.1.1).
const maxSubjectBytes = 998

// A Message is what a caller wants to be sent.
type Message struct {
	To            []string
	Subject, Body string
	HTML          bool // Body is HTML, and not plain text
}

// A Receipt is what is known of a mail that the server has taken.
type Receipt struct {
	MessageID  string   `json:"messageId"`  // without angle brackets
	Recipients []string `json:"recipients"` // those of the message, each once
}

// ReceiptSchema is the JSON Schema of a [Receipt].
const ReceiptSchema = `{
  "type": "object",
  "properties": {
    "messageId": {"type": "string"},
    "recipients": {"type": "array", "items": {"type": "string"}}
  },
  "required": ["messageId", "recipients"],
  "additionalProperties": false
}`

// Check reports what stands against a message without sending it. Its errors are
// [failure.Error].
func (m *Mailer) Check(message Message) error {
	_, err := m.check(message)
	return err
}

// check returns the recipients of a message, each once.
func (m *Mailer) check(message Message) (to []string, err error) {
	switch n := len(message.To); {
	case n == 0:
		return nil, failure.Errorf(failure.InvalidArgument, "the mail has no recipient")
	case n > m.maxRecipients: // before anything is done for each of them
		return nil, failure.Errorf(failure.TooLarge, "the mail has %d recipients: it may have %d", n, m.maxRecipients)
	case len(message.Body) > m.maxBytes:
		return nil, failure.Errorf(failure.TooLarge, "the body has more than %d bytes", m.maxBytes)
	case len(message.Subject) > maxSubjectBytes:
		return nil, failure.Errorf(failure.TooLarge, "the subject has more than %d bytes", maxSubjectBytes)
	case !utf8.ValidString(message.Subject) || strings.ContainsFunc(message.Subject, isBreak):
		return nil, failure.Errorf(failure.InvalidArgument, "the subject has line breaks or other control characters")
	case !utf8.ValidString(message.Body) || strings.ContainsFunc(message.Body, isUnprintable):
		return nil, failure.Errorf(failure.InvalidArgument, "the body has control characters other than line breaks and tabs")
	}
	for _, text := range message.To {
		a, err := parseAddress(text)
		if err != nil {
			return nil, failure.Errorf(failure.InvalidArgument, "the recipient %s: %v", truncate.Quote(text), err)
		}
		if !m.mayGet(a) {
			return nil, failure.Errorf(failure.NotAllowed, "the recipient %s is not on this agent's list of recipients", truncate.Quote(text))
		}
		if !slices.Contains(to, text) {
			to = append(to, text)
		}
	}
	return to, nil
}

// isBreak reports control characters and the two separators that some readers of mail
// take for line breaks.
func isBreak(c rune) bool { return unicode.IsControl(c) || c == '\u2028' || c == '\u2029' }

func isUnprintable(c rune) bool {
	return c < ' ' && c != '\n' && c != '\r' && c != '\t' || c == 0x7f
}

// build makes the mail of a message that was checked.
func (m *Mailer) build(message Message, to []string) (*mail.Msg, Receipt, error) {
	msg := mail.NewMsg(mail.WithNoDefaultUserAgent(), mail.WithEncoding(mail.EncodingQP))
	msg.FromMailAddress(m.from)
	if m.replyTo != nil {
		msg.ReplyToMailAddress(m.replyTo)
	}
	if err := msg.To(to...); err != nil {
		return nil, Receipt{}, failure.Errorf(failure.InvalidArgument, "a recipient is no address").Because(err)
	}
	msg.Subject(subject(message.Subject))
	msg.SetDateWithValue(time.Now().UTC()) // the place of this machine is nobody's business
	_, domain, _ := strings.Cut(m.from.Address, "@")
	id := rand.Text() + "@" + strings.ToLower(domain)
	msg.SetMessageIDWithValue(id)
	// Answering machines leave such mail alone (RFC 3834, section 5).
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	kind := mail.TypeTextPlain
	if message.HTML {
		kind = mail.TypeTextHTML
	}
	msg.SetBodyString(kind, lineBreaks(message.Body))
	return msg, Receipt{MessageID: id, Recipients: to}, nil
}

// lineBreaks brings the line breaks of a body into one form. A carriage return alone ends
// a line for some servers and not for others, which is how one mail becomes two.
func lineBreaks(body string) string {
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(body)
}

// subject returns a subject in the form in which readers show it as it was written. One
// that would be taken for an encoded word, or whose spaces folding would change, is
// encoded although it is ASCII.
func subject(s string) string {
	const maxWord = 60 // keeps each line below 76 bytes
	plain := !strings.Contains(s, "=?") && !strings.Contains(s, "  ") && strings.TrimSpace(s) == s
	for word := range strings.SplitSeq(s, " ") {
		plain = plain && len(word) <= maxWord
	}
	if plain && !strings.ContainsFunc(s, func(c rune) bool { return c >= utf8.RuneSelf }) {
		return s
	}
	const maxChunk = 42 // of which base64 makes 56 bytes (RFC 2047, section 2: 75 with the frame)
	var words []string
	for s != "" {
		n := min(maxChunk, len(s))
		for n < len(s) && !utf8.RuneStart(s[n]) { // no character is split
			n--
		}
		words = append(words, "=?UTF-8?B?"+base64.StdEncoding.EncodeToString([]byte(s[:n]))+"?=")
		s = s[n:]
	}
	return strings.Join(words, " ")
}
