package otlp

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// A Signal is what is sent. The values are those in the names of variables.
type Signal string

// The signals.
const (
	Traces Signal = "TRACES"
	Logs   Signal = "LOGS"
)

// path is where a collector takes the signal by HTTP.
func (s Signal) path() string { return "v1/" + strings.ToLower(string(s)) }

// method is the function that takes it by gRPC.
func (s Signal) method() string {
	if s == Logs {
		return "opentelemetry.proto.collector.logs.v1.LogsService/Export"
	}
	return "opentelemetry.proto.collector.trace.v1.TraceService/Export"
}

// A Protocol is how requests are made.
type Protocol string

// The protocols.
const (
	HTTP Protocol = "http/protobuf"
	GRPC Protocol = "grpc"
)

// A Config says where one signal goes.
type Config struct {
	// Signal is what is sent. Required.
	Signal Signal
	// Endpoint is the URL that takes it: for HTTP the whole of it, for gRPC the server.
	Endpoint *url.URL
	// Protocol is how; the default is HTTP.
	Protocol Protocol
	// Header are sent with each request. They may be secret.
	Header map[string]string
	// Gzip compresses requests.
	Gzip bool
	// Timeout bounds one request; the default is 10 s.
	Timeout time.Duration
	// TLS is for an https endpoint; nil trusts what the system trusts.
	TLS *tls.Config
}

// Where names the collector for people, with nothing of its URL that may be secret: keys come as a
// password, as a user without one, and as a query.
func (c *Config) Where() string {
	return (&url.URL{Scheme: c.Endpoint.Scheme, Host: c.Endpoint.Host, Path: c.Endpoint.Path}).String()
}

// defaultTimeout is that of the specification.
const defaultTimeout = 10 * time.Second

// FromEnv reads the OTEL_* variables for a signal. The configuration is nil where the signal
// is off, which it is without an endpoint. warnings are about variables that ask for what is
// not there; the specification wants them said, and not to be fatal.
func FromEnv(getenv func(string) string, s Signal) (cfg *Config, warnings []string, err error) {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return nil, nil, nil
	}
	// of is the variable of the signal, else that of all signals.
	of := func(name string) string {
		return cmp.Or(getenv("OTEL_EXPORTER_OTLP_"+string(s)+"_"+name), getenv("OTEL_EXPORTER_OTLP_"+name))
	}
	exporter := strings.TrimSpace(getenv("OTEL_" + string(s) + "_EXPORTER"))
	switch exporter {
	case "", "otlp":
	case "none":
		return nil, nil, nil
	default:
		return nil, []string{fmt.Sprintf("OTEL_%s_EXPORTER: %.64q is not known here: it is otlp or none", s, exporter)}, nil
	}
	if of("ENDPOINT") == "" && exporter == "" {
		return nil, nil, nil
	}
	cfg = &Config{Signal: s, Protocol: HTTP, Timeout: defaultTimeout, Gzip: of("COMPRESSION") == "gzip"}
	switch p := of("PROTOCOL"); p {
	case "", string(HTTP):
	case string(GRPC):
		cfg.Protocol = GRPC
	default:
		warnings = append(warnings, fmt.Sprintf("OTEL_EXPORTER_OTLP_PROTOCOL: %.64q is not known here: it is %s or %s; %s is used", p, GRPC, HTTP, HTTP))
	}
	if text := of("TIMEOUT"); text != "" {
		if ms, err := strconv.Atoi(text); err == nil && ms > 0 {
			cfg.Timeout = time.Duration(ms) * time.Millisecond
		} else {
			warnings = append(warnings, fmt.Sprintf("OTEL_EXPORTER_OTLP_TIMEOUT: %.64q is no number of milliseconds", text))
		}
	}
	if cfg.Header, err = headers(of("HEADERS")); err != nil {
		return nil, warnings, fmt.Errorf("OTEL_EXPORTER_OTLP_HEADERS: %w", err)
	}
	if cfg.Endpoint, err = endpoint(getenv, s, cfg.Protocol); err != nil {
		return nil, warnings, err
	}
	cfg.TLS, err = tlsOf(of)
	return cfg, warnings, err
}

// endpoint is where a signal goes. The variable of all signals names a server, to which the
// path of HTTP is added; that of one signal is taken as it is.
func endpoint(getenv func(string) string, s Signal, p Protocol) (*url.URL, error) {
	name := "OTEL_EXPORTER_OTLP_" + string(s) + "_ENDPOINT"
	text, own := getenv(name), true
	if text == "" {
		name, own = "OTEL_EXPORTER_OTLP_ENDPOINT", false
		text = getenv(name)
	}
	if text == "" {
		text = map[Protocol]string{HTTP: "http://localhost:4318", GRPC: "http://localhost:4317"}[p]
	}
	if p == GRPC && !strings.Contains(text, "://") {
		scheme := "https"
		if strings.EqualFold(cmp.Or(getenv("OTEL_EXPORTER_OTLP_"+string(s)+"_INSECURE"), getenv("OTEL_EXPORTER_OTLP_INSECURE")), "true") {
			scheme = "http"
		}
		text = scheme + "://" + text
	}
	return Endpoint(name, text, s, p, own)
}

// Endpoint parses the URL of a collector. whole says that its path is that of the signal, and
// not that of a server, to which the signal's is added. name is for the error, which does not
// repeat the text: it may have a password.
func Endpoint(name, text string, s Signal, p Protocol, whole bool) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s: must be a URL of http or https, such as http://localhost:4318", name)
	}
	if p == HTTP && !whole {
		u = u.JoinPath(s.path())
	}
	return u, nil
}

// headers reads key=value pairs, separated by commas, as those of W3C Baggage.
func headers(text string) (map[string]string, error) {
	all := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		key = strings.TrimSpace(key)
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || key == "" || err != nil || strings.ContainsAny(key+decoded, "\r\n\x00") {
			return nil, fmt.Errorf("must be key=value pairs, separated by commas, with %%-escapes") // without the value, which may be secret
		}
		all[key] = decoded
	}
	return all, nil
}

// tlsOf is what the certificates of variables ask for.
func tlsOf(of func(string) string) (*tls.Config, error) {
	authority, certificate, key := of("CERTIFICATE"), of("CLIENT_CERTIFICATE"), of("CLIENT_KEY")
	if authority == "" && certificate == "" && key == "" {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if authority != "" {
		pem, err := os.ReadFile(authority)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %s has no certificate", authority)
		}
	}
	if certificate != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}
