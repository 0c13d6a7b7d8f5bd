package nats

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	natsgo "github.com/nats-io/nats.go"
)

// A TLSError means that a server is there, and that no TLS connection can be made to it: one end
// does not accept the certificate of the other, only one of them speaks TLS, or a file with a
// certificate of this end cannot be used. It passes when the certificates are mended.
type TLSError struct {
	// Err is why.
	Err error
}

func (e *TLSError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *TLSError) Unwrap() error { return e.Err }

// certificates is an option of nats.go: it reads the files of certificates at each attempt to
// connect. Its own would do that as well, but the errors could not be told from others.
func (r *resolved) certificates(o *natsgo.Options) (err error) {
	if r.CAFile == "" && r.CertFile == "" {
		return nil
	}
	o.Secure = true
	if o.TLSConfig == nil {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if r.CAFile != "" {
		o.RootCAsCB = r.authorities
		_, err = r.authorities() // at once, rather than with the first server
	}
	if r.CertFile != "" && err == nil {
		o.TLSCertCB = r.certificate
		_, err = r.certificate()
	}
	return err
}

func (r *resolved) authorities() (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	text, err := os.ReadFile(r.CAFile)
	if err == nil && !pool.AppendCertsFromPEM(text) {
		err = errors.New("no certificate is in it (PEM)")
	}
	if err != nil {
		return nil, &OptionError{Option: "CAFile", Err: fmt.Errorf("%s: %w", r.CAFile, err)}
	}
	return pool, nil
}

func (r *resolved) certificate() (tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(r.CertFile, r.KeyFile)
	if err != nil {
		err = &OptionError{Option: "CertFile", Err: fmt.Errorf("%s: %w", r.CertFile, err)}
	}
	return pair, err
}

// tlsError makes an error of connecting a [TLSError] if it is one.
func (r *resolved) tlsError(err error) error {
	if err == nil || !failedTLS(err) {
		return err
	}
	return &TLSError{r.explain(err)}
}

// failedTLS reports whether an error of nats.go is one of TLS. A server that does not accept a
// client's certificate says so in an alert, which with TLS 1.3 follows the handshake.
func failedTLS(err error) bool {
	if alert, ok := errors.AsType[*net.OpError](err); ok && alert.Op == "remote error" {
		return true
	}
	_, notTLS := errors.AsType[tls.RecordHeaderError](err)
	_, file := errors.AsType[*OptionError](err) // of certificates: nats.go returns no others
	return notTLS || file || errors.Is(err, natsgo.ErrTLS) || errors.Is(err, natsgo.ErrSecureConnWanted) || errors.Is(err, natsgo.ErrSecureConnRequired)
}

// explain adds what only this end can know: servers say little about a certificate that they do
// not accept.
func (r *resolved) explain(err error) error {
	if r.CertFile == "" {
		_, server := errors.AsType[*tls.CertificateVerificationError](err)
		alert, ok := errors.AsType[*net.OpError](err)
		if !server && (errors.Is(err, natsgo.ErrTLS) || ok && alert.Op == "remote error") {
			return fmt.Errorf("%w (this end has no certificate, and the server may demand one)", err)
		}
		return err
	}
	pair, readErr := r.certificate()
	if readErr != nil || pair.Leaf == nil {
		return err
	}
	switch now := time.Now(); {
	case now.After(pair.Leaf.NotAfter):
		return fmt.Errorf("%w (the certificate in %s has expired at %s)", err, r.CertFile, pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(pair.Leaf.NotBefore):
		return fmt.Errorf("%w (the certificate in %s is not valid before %s)", err, r.CertFile, pair.Leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	return err
}

// lossInterval is how often the cause of a loss is asked for.
const lossInterval = time.Second

// watchLoss finds out whether it is TLS that keeps the connection from being made again, until it
// is, or has ended for good. nats.go tells by a lock that it holds while it dials, so that whoever
// asks for the cause must not wait for it.
func (c *Conn) watchLoss(nc *natsgo.Conn, again <-chan struct{}) {
	c.lossCause.Store(nil)
	tick := time.NewTicker(lossInterval)
	defer tick.Stop()
	for {
		select {
		case <-again:
			return
		case <-c.ended:
			return
		case <-tick.C:
		}
		why, _ := errors.AsType[*TLSError](c.tlsError(nc.LastError()))
		if before := c.lossCause.Swap(why); before == nil && why != nil {
			c.log.Error("the connection to NATS cannot be made again: TLS fails", "error", why)
		}
	}
}
