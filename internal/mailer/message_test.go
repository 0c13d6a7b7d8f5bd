package mailer

import (
	"bytes"
	"context"
	"io"
	"maps"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/internal/failure"
)

// Whatever a caller writes, the mail has the header that we give it, the caller's words
// in their places, and one body.
func FuzzMessage(f *testing.F) {
	f.Add("ann@example.com", "hello", "body", false)
	f.Add("ann@example.com", "=?utf-8?q?a=0D=0ABcc:_eve@example.com?=", "=?x?=", false)
	f.Add("ann@example.com", "a"+strings.Repeat(" ", 200)+strings.Repeat("b", 200), "\r\n.\r\nMAIL FROM:<eve@example.com>\r\n", true)
	f.Add("ann@example.com", strings.Repeat("grüße ", 40), "\n.\n\r.\r=3D\x85", false)
	f.Add("ann@example.com, eve@example.com", "Subject\r\nBcc: eve@example.com", "", false)
	f.Add("ann@example.com>\r\nRCPT TO:<eve@example.com", "\x00", "\x00", true)
	m, err := New(Config{Server: "localhost", From: `"Grüße, Agent" <agent@example.com>`, ReplyTo: "desk@example.com"}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, to, subject, body string, html bool) {
		message := Message{To: []string{to}, Subject: subject, Body: body, HTML: html}
		recipients, err := m.check(message)
		if err != nil {
			if failure.As(err) == nil {
				t.Fatalf("an error that is not for the caller: %v", err)
			}
			return
		}
		msg, receipt, err := m.build(message, recipients)
		if err != nil {
			t.Fatalf("%+v passed the check: %v", message, err)
		}
		var raw bytes.Buffer
		if _, err := msg.WriteTo(&raw); err != nil {
			t.Fatal(err)
		}
		checkMail(t, raw.Bytes(), message, receipt)
	})
}

// checkMail reads a mail as its reader does.
func checkMail(t *testing.T, raw []byte, message Message, receipt Receipt) {
	t.Helper()
	for line := range strings.SplitSeq(string(raw), "\r\n") {
		if strings.ContainsAny(line, "\r\n\x00") || len(line) > 998 {
			t.Fatalf("a line that no mail may have: %q", line)
		}
	}
	read, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	want := []string{"Auto-Submitted", "Content-Transfer-Encoding", "Content-Type", "Date", "From", "Message-Id", "Mime-Version", "Reply-To", "Subject", "To"}
	if got := slices.Sorted(maps.Keys(read.Header)); !slices.Equal(got, want) {
		t.Fatalf("header %q\n%s", got, raw)
	}
	for name, values := range read.Header {
		if len(values) != 1 {
			t.Fatalf("%s is there %d times", name, len(values))
		}
	}
	if got, err := new(mime.WordDecoder).DecodeHeader(read.Header.Get("Subject")); err != nil || got != message.Subject {
		t.Fatalf("subject %q, %v, want %q\n%s", got, err, message.Subject, raw)
	}
	to, err := read.Header.AddressList("To")
	if err != nil || len(to) != 1 || to[0].Name != "" || to[0].Address != message.To[0] {
		t.Fatalf("to %v, %v, want %q", to, err, message.To)
	}
	if id := read.Header.Get("Message-Id"); id != "<"+receipt.MessageID+">" || !strings.HasSuffix(id, "@example.com>") {
		t.Fatalf("message id %q, receipt %q", id, receipt.MessageID)
	}
	body, err := io.ReadAll(quotedprintable.NewReader(read.Body))
	if got := lineBreaks(string(body)); err != nil || got != lineBreaks(message.Body) {
		t.Fatalf("body %q, %v, want %q", got, err, message.Body)
	}
}

// An address that is accepted is the same to the parsers of others, and has nothing that
// a line of SMTP is made of.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"ann@example.com", "a.b+c@x", `"a b"@x.y`, "ann@[127.0.0.1]", "a@b@c", "<a@b>", "A@B", "a%b@c", "é@x", "a@é.x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := parseAddress(text)
		if err != nil {
			return
		}
		read, err := mail.ParseAddress(text)
		if err != nil || read.Name != "" || read.Address != text {
			t.Fatalf("%q: net/mail reads %v, %v", text, read, err)
		}
		if a.local+"@"+a.domain != strings.ToLower(text) || strings.ContainsAny(text, " \t\r\n\x00<>()[]\",:;\\!%|`") {
			t.Fatalf("%q: %v", text, a)
		}
	})
}

// A name that leads elsewhere after it was configured gains nothing: the address of the
// socket is what counts.
func TestOnlyLoopbackWithoutTLS(t *testing.T) {
	for addr, allowed := range map[string]bool{
		"127.0.0.1:25": true, "127.9.9.9:25": true, "[::1]:25": true, "[::ffff:127.0.0.1]:25": true,
		"192.0.2.1:25": false, "[::]:25": false, "0.0.0.0:25": false, "169.254.169.254:25": false, "nonsense": false,
	} {
		if err := onlyLoopback(context.Background(), "tcp", addr, nil); (err == nil) != allowed {
			t.Errorf("%s: %v", addr, err)
		}
	}
}
