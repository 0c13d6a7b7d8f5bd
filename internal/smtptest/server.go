package smtptest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// Options say what a [Server] is like. The zero value offers STARTTLS and asks for no
// password.
type Options struct {
	// TLS is spoken from the first byte on. NoTLS leaves STARTTLS out.
	TLS, NoTLS bool
	// Password is asked for before the first mail, of whatever user. Empty: none is.
	Password string
	// Rcpt and Data refuse a recipient and a mail.
	Rcpt func(to string) error
	Data func() error
}

// A Mail is one that a [Server] has taken.
type Mail struct {
	From, User string
	To         []string
	Data       []byte
	TLS        bool
}

// A Server is a mail server on a loopback address.
type Server struct {
	// Addr is its host and port, CAFile the certificate that its clients trust.
	Addr, CAFile string

	options Options
	mu      sync.Mutex
	mails   []Mail
	logins  int
}

// Start starts a server that ends with the test.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s, stop, err := Run(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return s
}

// Run starts a server that ends with stop, and writes its certificate into a folder.
func Run(folder string, o Options) (s *Server, stop func(), err error) {
	certificate, encoded, err := selfSigned()
	if err != nil {
		return nil, nil, err
	}
	s = &Server{options: o, CAFile: filepath.Join(folder, "ca.pem")}
	if err := os.WriteFile(s.CAFile, encoded, 0o600); err != nil {
		return nil, nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // returns at once
	if err != nil {
		return nil, nil, err
	}
	s.Addr = listener.Addr().String()
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &session{server: s, conn: c}, nil }))
	server.Domain = "mail.test"
	server.MaxMessageBytes = 8 << 20
	server.AllowInsecureAuth = o.NoTLS
	server.ErrorLog = log.New(io.Discard, "", 0)
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	switch {
	case o.TLS:
		listener = tls.NewListener(listener, config)
	case !o.NoTLS:
		server.TLSConfig = config
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ends with Close, below
	}()
	return s, func() {
		_ = server.Close()
		_ = listener.Close() // Serve may not have begun
		<-done
	}, nil
}

// Mails returns what the server has taken so far.
func (s *Server) Mails() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Mail(nil), s.mails...)
}

// Logins returns how often somebody has tried to sign in.
func (s *Server) Logins() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins
}

// session is one connection.
type session struct {
	server *Server
	conn   *smtp.Conn
	user   string
	mail   Mail
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		s.server.mu.Lock()
		s.server.logins++
		s.server.mu.Unlock()
		if password != s.server.options.Password {
			return smtp.ErrAuthFailed
		}
		s.user = user
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.server.options.Password != "" && s.user == "" {
		return smtp.ErrAuthRequired
	}
	_, encrypted := s.conn.TLSConnectionState()
	s.mail = Mail{From: from, User: s.user, TLS: encrypted}
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if f := s.server.options.Rcpt; f != nil {
		if err := f(to); err != nil {
			return err
		}
	}
	s.mail.To = append(s.mail.To, to)
	return nil
}

func (s *session) Data(r io.Reader) (err error) {
	if s.mail.Data, err = io.ReadAll(r); err != nil {
		return err
	}
	if f := s.server.options.Data; f != nil {
		if err := f(); err != nil {
			return err
		}
	}
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.mails = append(s.server.mails, s.mail)
	return nil
}

func (s *session) Reset()        { s.mail = Mail{} }
func (s *session) Logout() error { return nil }

// selfSigned makes a certificate for the loopback address, which is its own authority.
func selfSigned() (certificate tls.Certificate, encoded []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certificate, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return certificate, nil, err
	}
	encoded = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if len(encoded) == 0 {
		return certificate, nil, errors.New("the certificate cannot be encoded")
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, encoded, nil
}
