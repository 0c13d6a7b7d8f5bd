package nats_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/logtest"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/internal/tlstest"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
)

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// A server in operator mode knows users by the JWT in their credentials file.
func TestCredentialsFile(t *testing.T) {
	t.Parallel()
	text, key := must[string](t), must[nkeys.KeyPair](t)
	operator, account, user := key(nkeys.CreateOperator()), key(nkeys.CreateAccount()), key(nkeys.CreateUser())
	operatorClaims := jwt.NewOperatorClaims(text(operator.PublicKey()))
	accountClaims := jwt.NewAccountClaims(text(account.PublicKey()))
	userClaims := jwt.NewUserClaims(text(user.PublicKey()))
	creds := must[[]byte](t)(jwt.FormatUserConfig(text(userClaims.Encode(account)), must[[]byte](t)(user.Seed())))
	server := natstest.Run(t, fmt.Sprintf("operator: %s\nresolver: MEMORY\nresolver_preload: { %s: %s }\n",
		text(operatorClaims.Encode(operator)), text(account.PublicKey()), text(accountClaims.Encode(operator))))

	reaches(t, nats.Options{Servers: []string{server.URL()}, CredsFile: file(t, "user.creds", string(creds))})
	reaches(t, nats.FromEnv(env{nats.EnvURL: server.URL(), nats.EnvCreds: file(t, "user.creds", string(creds))}.get))
	_, err := nats.Connect(t.Context(), nats.Options{Servers: []string{server.URL()}})
	wantCode(t, err, transport.Denied)
}

// TLS works with and without a client's certificate. What is wrong with one is told apart from a
// server that is not there, and passes when its file is mended.
func TestTLS(t *testing.T) {
	t.Parallel()
	ca := tlstest.NewAuthority(t)
	cert, key := ca.Issue("server", time.Hour)
	server := natstest.Run(t, fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }", cert, key, ca.File))
	clientCert, clientKey := ca.Issue("client", time.Hour)
	url := []string{"tls://" + server.Addr()}

	reaches(t, nats.Options{Servers: url, CAFile: ca.File, CertFile: clientCert, KeyFile: clientKey})
	reaches(t, nats.FromEnv(env{
		nats.EnvURL: url[0], nats.EnvCA: ca.File, nats.EnvCert: clientCert, nats.EnvKey: clientKey,
	}.get))
	expiredCert, expiredKey := ca.Issue("late", -time.Hour)
	plain := []string{"tls://" + natstest.Run(t, "").Addr()}
	for name, test := range map[string]struct {
		opts nats.Options
		says string
	}{
		"no client certificate":  {nats.Options{Servers: url, CAFile: ca.File}, "the server may demand one"},
		"it has expired":         {nats.Options{Servers: url, CAFile: ca.File, CertFile: expiredCert, KeyFile: expiredKey}, "has expired at "},
		"another authority":      {nats.Options{Servers: url, CAFile: tlstest.NewAuthority(t).File, CertFile: clientCert, KeyFile: clientKey}, "unknown authority"},
		"authority not known":    {nats.Options{Servers: url, CertFile: clientCert, KeyFile: clientKey}, "unknown authority"},
		"certificate of another": {nats.Options{Servers: url, CAFile: ca.File, CertFile: clientCert, KeyFile: key}, "CertFile: " + clientCert},
		"no certificate":         {nats.Options{Servers: url, CAFile: file(t, "ca.pem", "none")}, "CAFile: "},
		"a server without TLS":   {nats.Options{Servers: plain, CAFile: ca.File}, "secure connection not available"},
		"TLS first, without TLS": {nats.Options{Servers: plain, CAFile: ca.File, TLSFirst: true}, "does not look like a TLS handshake"},
	} {
		c, err := nats.Connect(t.Context(), test.opts)
		if err == nil {
			t.Errorf("%s: connected", name)
			_ = c.Close()
			continue
		}
		wantCode(t, err, transport.Disconnected)
		if _, ok := errors.AsType[*nats.TLSError](err); !ok || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := nats.Connect(t.Context(), nats.Options{Servers: []string{"tls://127.0.0.1:1"}, CAFile: ca.File})
	if _, ok := errors.AsType[*nats.TLSError](err); ok {
		t.Errorf("no server: %v", err)
	}
}

// A connection that is lost, and that TLS keeps from being made again, says so, once in the log. It
// is made again when the certificates are mended, without another call of Connect.
func TestTLSOfReconnections(t *testing.T) {
	t.Parallel()
	ca := tlstest.NewAuthority(t)
	cert, key := ca.Issue("server", time.Hour)
	server := natstest.Run(t, fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }", cert, key, ca.File))
	read := func(path string) string { return string(must[[]byte](t)(os.ReadFile(path))) }
	good, goodKey := ca.Issue("client", time.Hour)
	late, lateKey := ca.Issue("client", -time.Hour)
	own, ownKey, trusted := file(t, "cert.pem", read(good)), file(t, "key.pem", read(goodKey)), file(t, "ca.pem", read(ca.File))
	log := &logtest.Lines{}
	c := connect(t, nats.Options{
		Servers: []string{"tls://" + server.Addr()}, CAFile: trusted, CertFile: own, KeyFile: ownKey, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	put := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, fault := range []struct {
		begin, end func()
		says       string
	}{
		{func() { put(trusted, read(tlstest.NewAuthority(t).File)) }, func() { put(trusted, read(ca.File)) }, "unknown authority"},
		{func() { put(own, read(late)); put(ownKey, read(lateKey)) }, func() { put(own, read(good)); put(ownKey, read(goodKey)) }, "has expired at "},
		{func() { _ = os.Remove(own) }, func() { put(own, read(good)) }, "CertFile: " + own},
	} {
		server.Stop()
		fault.begin()
		server.Start()
		eventually.Holds(t, "it says that it is TLS: "+fault.says, func() bool {
			_, ok := errors.AsType[*nats.TLSError](c.Err())
			return ok && strings.Contains(c.Err().Error(), fault.says)
		})
		wantCode(t, c.Err(), transport.Disconnected)
		fault.end()
		eventually.Succeeds(t, "it has connected again", c.Err)
	}
	if n := log.Count("level=ERROR"); n != 3 {
		t.Errorf("%d lines of errors, not one for each fault", n)
	}
}
