package mailer_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/mailer"
	"github.com/agentd/agentd/internal/smtptest"
)

const password = "t0p-secret-password"

func secret(ref string) (string, error) {
	if ref != "env:SMTP_PASSWORD" {
		return "", fmt.Errorf("no secret %s", ref)
	}
	return password, nil
}

// config reaches a server.
func config(s *smtptest.Server) mailer.Config {
	return mailer.Config{Server: s.Addr, TLS: "starttls", CAFile: s.CAFile, From: "Reports <reports@example.com>"}
}

func open(t *testing.T, c mailer.Config) *mailer.Mailer {
	t.Helper()
	m, err := mailer.New(c, secret)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func hello() mailer.Message {
	return mailer.Message{To: []string{"ann@example.com"}, Subject: "hello", Body: "How are you?"}
}

// failed asserts the code of an error, and that it shows no secret.
func failed(t *testing.T, err error, code failure.Code, text string) {
	t.Helper()
	e := failure.As(err)
	if e == nil || e.Code != code || !strings.Contains(e.Text, text) {
		t.Errorf("got %v (%#v), want %s: %s", err, e, code, text)
		return
	}
	if shown := fmt.Sprintf("%v %v", e, e.Err); strings.Contains(shown, password) {
		t.Errorf("the password is shown: %s", shown)
	}
}

func TestSend(t *testing.T) {
	for name, c := range map[string]struct {
		server smtptest.Options
		tls    string
		user   string
	}{
		"STARTTLS":               {smtptest.Options{}, "starttls", ""},
		"STARTTLS with password": {smtptest.Options{Password: password}, "starttls", "robot"},
		"TLS":                    {smtptest.Options{TLS: true}, "tls", ""},
		"TLS with password":      {smtptest.Options{TLS: true, Password: password}, "tls", "robot"},
		"loopback":               {smtptest.Options{NoTLS: true}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := smtptest.Start(t, c.server)
			conf := config(server)
			if conf.TLS, conf.User = c.tls, c.user; c.user != "" {
				conf.Password = "env:SMTP_PASSWORD"
			}
			conf.ReplyTo = "desk@example.com"
			m := open(t, conf)
			receipt, err := m.Send(t.Context(), mailer.Message{
				To:      []string{"ann@example.com", "Bob@Example.org", "ann@example.com"},
				Subject: "Grüße  an =?all?=", Body: "<p>line 1</p>\r\n.\r\nline 2\n" + strings.Repeat("é", 2000), HTML: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			mails := server.Mails()
			if len(mails) != 1 {
				t.Fatalf("the server has %d mails", len(mails))
			}
			got := mails[0]
			to := []string{"ann@example.com", "Bob@Example.org"}
			if got.From != "reports@example.com" || !slices.Equal(got.To, to) || !slices.Equal(receipt.Recipients, to) || got.TLS == c.server.NoTLS || got.User != c.user {
				t.Errorf("envelope %+v, receipt %+v", got, receipt)
			}
			read, err := mail.ReadMessage(strings.NewReader(string(got.Data)))
			if err != nil {
				t.Fatal(err)
			}
			if subject, err := new(mime.WordDecoder).DecodeHeader(read.Header.Get("Subject")); err != nil || subject != "Grüße  an =?all?=" {
				t.Errorf("subject %q, %v", subject, err)
			}
			if h := read.Header; h.Get("From") != `"Reports" <reports@example.com>` || h.Get("Reply-To") != "<desk@example.com>" ||
				h.Get("Message-Id") != "<"+receipt.MessageID+">" || !strings.HasPrefix(h.Get("Content-Type"), "text/html; charset=UTF-8") {
				t.Errorf("header %v", h)
			}
			body, err := io.ReadAll(quotedprintable.NewReader(read.Body))
			if want := "<p>line 1</p>\r\n.\r\nline 2\r\n" + strings.Repeat("é", 2000); err != nil || strings.TrimSuffix(string(body), "\r\n") != want {
				t.Errorf("body %q, %v", body, err)
			}
		})
	}
}

// The adversarial table: each is refused before anything is sent.
func TestRefusesMessages(t *testing.T) {
	server := smtptest.Start(t, smtptest.Options{})
	conf := config(server)
	conf.Recipients = []string{"ann@example.com", "*@example.org", "*@*.example.net"}
	conf.MaxBytes = 1000
	m := open(t, conf)
	many := make([]string, 10_000)
	for i := range many {
		many[i] = fmt.Sprintf("u%d@example.org", i)
	}
	to := func(to ...string) mailer.Message { return mailer.Message{To: to, Subject: "s", Body: "b"} }
	about := func(subject string) mailer.Message {
		return mailer.Message{To: []string{"ann@example.com"}, Subject: subject}
	}
	says := func(body string) mailer.Message { return mailer.Message{To: []string{"ann@example.com"}, Body: body} }
	for name, c := range map[string]struct {
		message mailer.Message
		code    failure.Code
	}{
		"nobody":                     {to(), failure.InvalidArgument},
		"ten thousand recipients":    {to(many...), failure.TooLarge},
		"eleven recipients":          {to(many[:11]...), failure.TooLarge},
		"ten thousand in one":        {to(strings.Join(many, ", ")), failure.InvalidArgument},
		"two in one":                 {to("a@example.org,b@example.org"), failure.InvalidArgument},
		"a group":                    {to("all: a@example.org, b@example.org;"), failure.InvalidArgument},
		"not listed":                 {to("eve@example.com"), failure.NotAllowed},
		"one of two not listed":      {to("ann@example.com", "eve@example.com"), failure.NotAllowed},
		"the domain itself":          {to("a@example.net"), failure.NotAllowed},
		"a domain that ends so":      {to("a@evil-example.org"), failure.NotAllowed},
		"a host below":               {to("a@sub.example.org"), failure.NotAllowed},
		"percent route":              {to("eve%evil.test@example.org"), failure.InvalidArgument},
		"bang route":                 {to("evil.test!eve@example.org"), failure.InvalidArgument},
		"source route":               {to("@evil.test:eve@example.org"), failure.InvalidArgument},
		"a program":                  {to("|sh@example.org"), failure.InvalidArgument},
		"two at signs":               {to("eve@evil.test@example.org"), failure.InvalidArgument},
		"quoted":                     {to(`"eve@evil.test"@example.org`), failure.InvalidArgument},
		"with a name":                {to("Ann <ann@example.com>"), failure.InvalidArgument},
		"a comment":                  {to("ann@example.com (eve@evil.test)"), failure.InvalidArgument},
		"in brackets":                {to("<ann@example.com>"), failure.InvalidArgument},
		"an address literal":         {to("root@[127.0.0.1]"), failure.InvalidArgument},
		"an encoded word":            {to("=?utf-8?q?ann=40example.com?="), failure.InvalidArgument},
		"no domain":                  {to("root"), failure.InvalidArgument},
		"empty":                      {to(""), failure.InvalidArgument},
		"another alphabet":           {to("аnn@example.com"), failure.InvalidArgument}, // a Cyrillic letter
		"full-width":                 {to("ann＠example.com"), failure.InvalidArgument},
		"too long":                   {to(strings.Repeat("a", 65) + "@example.org"), failure.InvalidArgument},
		"CRLF in the recipient":      {to("ann@example.com\r\nRCPT TO:<eve@evil.test>"), failure.InvalidArgument},
		"LF behind the recipient":    {to("ann@example.com\n"), failure.InvalidArgument},
		"NUL in the recipient":       {to("ann@example.com\x00"), failure.InvalidArgument},
		"SMTP in the recipient":      {to("ann@example.com> SIZE=1 <"), failure.InvalidArgument},
		"CRLF in the subject":        {about("x\r\nBcc: eve@evil.test"), failure.InvalidArgument},
		"LF in the subject":          {about("x\nBcc: eve@evil.test"), failure.InvalidArgument},
		"CR in the subject":          {about("x\rBcc: eve@evil.test"), failure.InvalidArgument},
		"folded subject":             {about("x\r\n Bcc: eve@evil.test"), failure.InvalidArgument},
		"NEL in the subject":         {about("x\u0085Bcc: eve@evil.test"), failure.InvalidArgument},
		"separator in the subject":   {about("x\u2028Bcc: eve@evil.test"), failure.InvalidArgument},
		"NUL in the subject":         {about("x\x00"), failure.InvalidArgument},
		"subject that is not UTF-8":  {about("x\xff"), failure.InvalidArgument},
		"a subject without end":      {about(strings.Repeat("x", 999)), failure.TooLarge},
		"NUL in the body":            {says("x\x00y"), failure.InvalidArgument},
		"escape in the body":         {says("x\x1b[2J"), failure.InvalidArgument},
		"a body that is not UTF-8":   {says("x\xff"), failure.InvalidArgument},
		"a body beyond the operator": {says(strings.Repeat("x", 1001)), failure.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := m.Send(t.Context(), c.message)
			failed(t, err, c.code, "")
			if err := m.Check(c.message); failure.As(err) == nil || failure.As(err).Code != c.code {
				t.Errorf("Check: %v", err)
			}
			if err != nil && len(err.Error()) > 400 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
	for _, allowed := range []string{"ANN@Example.com", "a@example.org", "a@x.y.example.net"} {
		if err := m.Check(to(allowed)); err != nil {
			t.Errorf("%s: %v", allowed, err)
		}
	}
	if n := len(server.Mails()); n > 0 {
		t.Errorf("%d mails were sent", n)
	}
}

// What ends a mail for some servers and not for others ends none: the body arrives whole,
// and as one.
func TestSmuggling(t *testing.T) {
	server := smtptest.Start(t, smtptest.Options{})
	m := open(t, config(server))
	const second = "MAIL FROM:<eve@evil.test>%[1]sRCPT TO:<bob@example.com>%[1]sDATA%[1]sSubject: x%[1]s%[1]sy%[1]s.%[1]s"
	for i, end := range []string{"\r\n.\r\n", "\n.\n", "\r.\r", "\n.\r\n", "\r\n.\n", "\r\n.\r", "\r\n\x2e\r\r\n"} {
		message := hello()
		message.Body = "a" + end + fmt.Sprintf(second, "\r\n")
		if _, err := m.Send(t.Context(), message); err != nil {
			t.Fatal(err)
		}
		mails := server.Mails()
		if len(mails) != i+1 || !slices.Equal(mails[i].To, []string{"ann@example.com"}) {
			t.Fatalf("%q: the server has %+v", end, mails)
		}
	}
}

func TestRefusesConfigurations(t *testing.T) {
	for name, c := range map[string]struct {
		config mailer.Config
		want   string
	}{
		"no server":              {mailer.Config{From: "a@b.c"}, "server:"},
		"a URL":                  {mailer.Config{Server: "smtp://b.c", From: "a@b.c"}, "server:"},
		"a socket":               {mailer.Config{Server: "unix:///run/smtp", From: "a@b.c"}, "server:"},
		"port 0":                 {mailer.Config{Server: "b.c:0", From: "a@b.c"}, "server:"},
		"plain text":             {mailer.Config{Server: "mail.example.com:25", TLS: "none", From: "a@b.c"}, "loopback"},
		"plain text, private":    {mailer.Config{Server: "10.0.0.1", TLS: "none", From: "a@b.c"}, "loopback"},
		"plain, a loopback name": {mailer.Config{Server: "localhost.example.com", TLS: "none", From: "a@b.c"}, "loopback"},
		"whatever":               {mailer.Config{Server: "b.c", TLS: "opportunistic", From: "a@b.c"}, "tls:"},
		"password in the clear":  {mailer.Config{Server: "localhost", TLS: "none", User: "u", Password: "env:SMTP_PASSWORD", From: "a@b.c"}, "by TLS only"},
		"user alone":             {mailer.Config{Server: "b.c", User: "u", From: "a@b.c"}, "password"},
		"lost reference":         {mailer.Config{Server: "b.c", User: "u", Password: "env:X", From: "a@b.c"}, "password: no secret"},
		"no sender":              {mailer.Config{Server: "b.c"}, "from:"},
		"two senders":            {mailer.Config{Server: "b.c", From: "a@b.c, d@e.f"}, "from:"},
		"CRLF in the name":       {mailer.Config{Server: "b.c", From: "A\r\nBcc: eve@evil.test <a@b.c>"}, "from:"},
		"CRLF in disguise":       {mailer.Config{Server: "b.c", From: "=?utf-8?q?A=0D=0ABcc:_eve?= <a@b.c>"}, "from:"},
		"NUL in the name":        {mailer.Config{Server: "b.c", From: "A\x00 <a@b.c>"}, "from:"},
		"LF for answers":         {mailer.Config{Server: "b.c", From: "a@b.c", ReplyTo: "a@b.c\nBcc: eve@evil.test"}, "replyTo:"},
		"nobody":                 {mailer.Config{Server: "b.c", From: "a@b.c", Recipients: []string{}}, "recipients:"},
		"a wildcard":             {mailer.Config{Server: "b.c", From: "a@b.c", Recipients: []string{"*"}}, "recipients[0]:"},
		"half a wildcard":        {mailer.Config{Server: "b.c", From: "a@b.c", Recipients: []string{"a@b.c", "a*@b.c"}}, "recipients[1]:"},
		"wildcard domain":        {mailer.Config{Server: "b.c", From: "a@b.c", Recipients: []string{"*@b.*"}}, "recipients[0]:"},
		"no certificates":        {mailer.Config{Server: "b.c", From: "a@b.c", CAFile: "/dev/null"}, "caFile:"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := mailer.New(c.config, secret); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), password) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// What is wrong with the server is in the error, and nothing was sent.
func TestServerFailures(t *testing.T) {
	for name, c := range map[string]struct {
		server smtptest.Options
		change func(*mailer.Config)
		code   failure.Code
		text   string
	}{
		"no STARTTLS":         {smtptest.Options{NoTLS: true}, nil, failure.Unavailable, "no STARTTLS"},
		"unknown certificate": {smtptest.Options{}, func(c *mailer.Config) { c.CAFile = "" }, failure.Unavailable, "certificate"},
		"unknown certificate, TLS": {smtptest.Options{TLS: true},
			func(c *mailer.Config) { c.CAFile, c.TLS = "", "tls" }, failure.Unavailable, "certificate"},
		"TLS to STARTTLS": {smtptest.Options{}, func(c *mailer.Config) { c.TLS = "tls" }, failure.Unavailable, ""},
		"wrong password": {smtptest.Options{Password: "another"},
			func(c *mailer.Config) { c.User, c.Password = "robot", "env:SMTP_PASSWORD" }, failure.Unavailable, "sign in"},
		"no password": {smtptest.Options{Password: "another"}, nil, failure.NotAllowed, "refuses"},
		"a recipient refused": {smtptest.Options{Rcpt: func(to string) error {
			if to != "ann@example.com" {
				return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user " + to}
			}
			return nil
		}}, nil, failure.NotAllowed, "nobody was sent any"},
		"grey list": {smtptest.Options{Rcpt: func(string) error {
			return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "later"}
		}}, nil, failure.Unavailable, "at present"},
		"too large": {smtptest.Options{Data: func() error {
			return &smtp.SMTPError{Code: 552, EnhancedCode: smtp.EnhancedCode{5, 3, 4}, Message: "large"}
		}}, nil, failure.TooLarge, "larger"},
		"spam": {smtptest.Options{Data: func() error {
			return &smtp.SMTPError{Code: 554, EnhancedCode: smtp.EnhancedCode{5, 7, 1}, Message: "spam"}
		}}, nil, failure.NotAllowed, "refuses"},
		"nobody there": {smtptest.Options{}, func(c *mailer.Config) { c.Server = "127.0.0.1:1" }, failure.Unavailable, "refuses the connection"},
	} {
		t.Run(name, func(t *testing.T) {
			server := smtptest.Start(t, c.server)
			conf := config(server)
			if c.change != nil {
				c.change(&conf)
			}
			message := hello()
			message.To = []string{"ann@example.com", "bob@example.com"}
			_, err := open(t, conf).Send(t.Context(), message)
			failed(t, err, c.code, c.text)
			if e := failure.As(err); e != nil && e.Err != nil && strings.Contains(e.Err.Error(), "bob@") {
				t.Errorf("the log has an address: %v", e.Err)
			}
			if len(server.Mails()) > 0 {
				t.Error("a mail was sent")
			}
		})
	}
	server := smtptest.Start(t, smtptest.Options{NoTLS: true, Password: password})
	conf := config(server)
	conf.User, conf.Password = "robot", "env:SMTP_PASSWORD"
	if _, err := open(t, conf).Send(t.Context(), hello()); err == nil || server.Logins() > 0 {
		t.Errorf("%v; the password was sent %d times", err, server.Logins())
	}
}

// script runs a server that does what f does with each connection.
func script(t *testing.T, f func(net.Conn, *bufio.Reader)) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			f(conn, bufio.NewReader(conn))
			conn.Close()
		}
	}()
	t.Cleanup(func() { listener.Close(); <-done })
	return listener.Addr().String()
}

// take answers everything of a conversation up to the end of a mail.
func take(conn net.Conn, r *bufio.Reader) {
	fmt.Fprint(conn, "220 mail.test\r\n")
	for {
		line, err := r.ReadString('\n')
		switch {
		case err != nil || line == ".\r\n":
			return
		case line == "DATA\r\n":
			fmt.Fprint(conn, "354 go on\r\n")
		case strings.HasPrefix(line, "EHLO") || strings.HasPrefix(line, "MAIL") || strings.HasPrefix(line, "RCPT"):
			fmt.Fprint(conn, "250 mail.test\r\n")
		}
	}
}

func TestHostileServers(t *testing.T) {
	for name, c := range map[string]struct {
		f    func(net.Conn, *bufio.Reader)
		code failure.Code
		text string
	}{
		"silence":            {func(conn net.Conn, _ *bufio.Reader) { io.Copy(io.Discard, conn) }, failure.Timeout, ""},
		"HTTP":               {func(conn net.Conn, _ *bufio.Reader) { fmt.Fprint(conn, "HTTP/1.1 400 Bad Request\r\n\r\n") }, failure.Unavailable, ""},
		"a closed door":      {func(conn net.Conn, _ *bufio.Reader) { fmt.Fprint(conn, "554 go away\r\n") }, failure.Unavailable, "554"},
		"hangs up":           {func(net.Conn, *bufio.Reader) {}, failure.Unavailable, ""},
		"hangs up with mail": {take, failure.Network, "may have been sent or not"},
		"keeps the receipt":  {func(conn net.Conn, r *bufio.Reader) { take(conn, r); io.Copy(io.Discard, conn) }, failure.Timeout, "may have been sent or not"},
		"a line without end": {func(conn net.Conn, _ *bufio.Reader) {
			for _, err := fmt.Fprint(conn, "220-"); err == nil; _, err = fmt.Fprint(conn, strings.Repeat("x", 1<<16)) {
			}
		}, failure.Unavailable, ""},
		"an answer without end": {func(conn net.Conn, _ *bufio.Reader) {
			for err := error(nil); err == nil; _, err = fmt.Fprint(conn, strings.Repeat("220-go on\r\n", 1<<12)) {
			}
		}, failure.Unavailable, ""},
		"drips": {func(conn net.Conn, _ *bufio.Reader) {
			for err := error(nil); err == nil; _, err = fmt.Fprint(conn, "220-\r\n") {
				time.Sleep(20 * time.Millisecond) // the pace of this server
			}
		}, failure.Timeout, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conf := mailer.Config{Server: script(t, c.f), From: "a@example.com", TimeoutMs: 20_000}
			if c.code == failure.Timeout {
				conf.TimeoutMs = 500
			}
			start := time.Now()
			_, err := open(t, conf).Send(t.Context(), hello())
			failed(t, err, c.code, c.text)
			if took := time.Since(start); c.code == failure.Timeout && took > 15*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// A server that has taken the mail may leave without a word.
func TestDeliveredWithoutFarewell(t *testing.T) {
	addr := script(t, func(conn net.Conn, r *bufio.Reader) {
		take(conn, r)
		fmt.Fprint(conn, "250 taken\r\n")
	})
	if _, err := open(t, mailer.Config{Server: addr, From: "a@example.com"}).Send(t.Context(), hello()); err != nil {
		t.Error(err)
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	addr := script(t, func(conn net.Conn, _ *bufio.Reader) {
		cancel(errors.New("the caller went away"))
		io.Copy(io.Discard, conn)
	})
	_, err := open(t, mailer.Config{Server: addr, From: "a@example.com"}).Send(ctx, hello())
	failed(t, err, failure.Cancelled, "")
}
