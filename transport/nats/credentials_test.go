package nats_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/agentd/agentd/internal/natstest"
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

// An authority makes certificates for one test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, key: must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der := must[[]byte](t)(x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key))
	a.cert = must[*x509.Certificate](t)(x509.ParseCertificate(der))
	a.file = a.pem("CERTIFICATE", der)
	return a
}

func (a *authority) pem(kind string, der []byte) string {
	return file(a.t, "tls.pem", string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
}

// issue returns the files of a certificate for loopback and of its key.
func (a *authority) issue(name string) (cert, key string) {
	private := must[*ecdsa.PrivateKey](a.t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der := must[[]byte](a.t)(x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key))
	return a.pem("CERTIFICATE", der), a.pem("EC PRIVATE KEY", must[[]byte](a.t)(x509.MarshalECPrivateKey(private)))
}

func TestTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	cert, key := ca.issue("server")
	server := natstest.Run(t, fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }", cert, key, ca.file))
	clientCert, clientKey := ca.issue("client")
	url := []string{"tls://" + server.Addr()}

	reaches(t, nats.Options{Servers: url, CAFile: ca.file, CertFile: clientCert, KeyFile: clientKey})
	reaches(t, nats.FromEnv(env{
		nats.EnvURL: url[0], nats.EnvCA: ca.file, nats.EnvCert: clientCert, nats.EnvKey: clientKey,
	}.get))
	for name, opts := range map[string]nats.Options{
		"no client certificate":  {Servers: url, CAFile: ca.file},
		"another authority":      {Servers: url, CAFile: newAuthority(t).file, CertFile: clientCert, KeyFile: clientKey},
		"authority not known":    {Servers: url, CertFile: clientCert, KeyFile: clientKey},
		"certificate of another": {Servers: url, CAFile: ca.file, CertFile: clientCert, KeyFile: key},
	} {
		if c, err := nats.Connect(t.Context(), opts); err == nil {
			t.Errorf("%s: connected", name)
			_ = c.Close()
		}
	}
}
