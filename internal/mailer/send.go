package mailer

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/wneessen/go-mail"

	"github.com/agentd/agentd/internal/failure"
)

const (
	// maxAnswerBytes bounds what a server may send while it gets a mail, its certificates
	// included.
	maxAnswerBytes = 256 << 10
	// partingTime bounds the farewell to a server that has taken the mail.
	partingTime = 2 * time.Second
)

// Send sends a message to all its recipients, or to none. Errors are [failure.Error].
func (m *Mailer) Send(ctx context.Context, message Message) (Receipt, error) {
	to, err := m.check(message)
	if err != nil {
		return Receipt{}, err
	}
	msg, receipt, err := m.build(message, to)
	if err != nil {
		return Receipt{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	if err := m.deliver(ctx, msg); err != nil {
		return Receipt{}, translate(ctx, err)
	}
	return receipt, nil
}

// deliver hands a mail to the server, on a connection of its own.
func (m *Mailer) deliver(ctx context.Context, msg *mail.Msg) error {
	line := &line{mailer: m}
	// The library does not look at the context once the connection stands, and leaves the
	// connection open when it fails before.
	defer line.close()
	defer context.AfterFunc(ctx, line.close)()

	options := []mail.Option{
		mail.WithDialContextFunc(line.dial), mail.WithPort(m.port), mail.WithTLSConfig(m.tlsConfig.Clone()),
		mail.WithTimeout(m.timeout + partingTime), // the context comes first, and says why
		mail.WithoutNoop(),
		mail.WithoutRset(),     // its failure would make a delivered mail look like a lost one
		mail.WithoutSMTPUTF8(), // addresses are ASCII
	}
	switch m.tls {
	case startTLS:
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
	case implicitTLS:
		options = append(options, mail.WithSSL()) // line.dial speaks TLS
	case noTLS:
		options = append(options, mail.WithTLSPolicy(mail.NoTLS))
	}
	if m.user != "" {
		options = append(options, mail.WithUsername(m.user), mail.WithPassword(m.password),
			mail.WithOpportunisticSMTPAuth(mail.SMTPAuthSCRAMSHA256, mail.SMTPAuthPlain, mail.SMTPAuthLogin))
	}
	client, err := mail.NewClient(m.host, options...)
	if err != nil {
		return err
	}
	session, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return err
	}
	if err := client.SendWithSMTPClient(session, msg); err != nil {
		return err
	}
	line.hurry(partingTime)
	_ = client.CloseWithSMTPClient(session) // the server has the mail
	return nil
}

// A line is the connection over which one mail goes.
type line struct {
	mailer *Mailer

	mu     sync.Mutex
	conn   net.Conn // nil before dial
	closed bool
}

// dial connects to the server.
func (l *line) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	dialer := &net.Dialer{}
	if l.mailer.tls == noTLS {
		dialer.ControlContext = onlyLoopback
	}
	// The library does not put the brackets of IPv6 around a host.
	raw, err := dialer.DialContext(ctx, "tcp", joined(addr))
	if err != nil {
		return nil, err
	}
	conn := &bounded{Conn: raw, left: maxAnswerBytes}
	if !l.hold(conn) {
		return nil, errors.Join(net.ErrClosed, raw.Close())
	}
	if l.mailer.tls != implicitTLS {
		return conn, nil
	}
	encrypted := tls.Client(conn, l.mailer.tlsConfig.Clone())
	if err := encrypted.HandshakeContext(ctx); err != nil {
		return nil, err // close ends the connection
	}
	return encrypted, nil
}

// joined puts the brackets of IPv6 around the host of host:port.
func joined(addr string) string {
	colon := strings.LastIndexByte(addr, ':')
	return net.JoinHostPort(addr[:colon], addr[colon+1:])
}

// onlyLoopback runs when a socket is about to connect, with the address that the kernel
// gets.
func onlyLoopback(_ context.Context, _, addr string, _ syscall.RawConn) error {
	if read, err := netip.ParseAddrPort(addr); err != nil || !read.Addr().Unmap().IsLoopback() {
		return failure.Errorf(failure.NotAllowed, "the mail server is not on a loopback address, and nothing is sent without TLS")
	}
	return nil
}

// hold keeps the connection to be closed, and reports false if that is due already.
func (l *line) hold(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = conn
	return !l.closed
}

func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed = true; l.conn != nil {
		_ = l.conn.Close() // twice is no harm
	}
}

// hurry lets the rest of the conversation take no longer than d.
func (l *line) hurry(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.conn.SetDeadline(time.Now().Add(d)) // fails on a closed connection, which waits for nothing
}

// bounded is a connection that brings in so many bytes and no more: an answer of SMTP can
// go on for ever.
type bounded struct {
	net.Conn
	left int // one reads at a time
}

var errAnswerTooLong = errors.New("the server sends more than a mail gives it reason to")

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errAnswerTooLong
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
