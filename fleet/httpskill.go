package fleet

import (
	"fmt"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/agentd/agentd/internal/secretref"
	"github.com/agentd/agentd/internal/strictyaml"
)

// An HTTPSkill is a web service that runs a skill: each call is a request to it. Package
// skill/httpskill has the exchange.
type HTTPSkill struct {
	// URL is where requests go, and Method how: POST, PUT or PATCH.
	URL, Method string
	// Headers are sent with each request, in declared order, as Name: value.
	Headers []HTTPHeader
	// Credentials are sent with each request, by https only.
	Credentials []MCPCredential
	// AllowAddresses are ranges that the service may be in although they are not public.
	AllowAddresses []string
	// TLS says how the service proves itself, and how agentd does.
	TLS HTTPTLS
	// Timeout bounds a request; 0 leaves it to the deadline of the call.
	Timeout time.Duration
	// MaxResponseBytes bounds an answer. The default is 4 MiB.
	MaxResponseBytes int
	// Position is where the runner stands.
	Position Position
}

// An HTTPHeader is a header of requests that is no secret.
type HTTPHeader struct{ Name, Value string }

// HTTPTLS are the files and the name for connections to a service by https. Each may be "".
type HTTPTLS struct {
	// CA holds authorities in place of the system's. Cert and Key are shown to a service that
	// asks for a certificate. All are absolute paths of PEM files.
	CA, Cert, Key string
	// ServerName is whom the service's certificate is for; the host of the URL if "".
	ServerName string
}

// files are the paths of the files that the runner names. The secret ones come first.
func (h *HTTPSkill) files() (paths []string) {
	paths = h.SecretFiles()
	for _, path := range []string{h.TLS.CA, h.TLS.Cert} {
		if path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

// SecretFiles are the paths of the secrets that the runner names: no skill may read them.
func (h *HTTPSkill) SecretFiles() (paths []string) {
	for _, c := range h.Credentials {
		paths = append(paths, secretref.Files(c.SecretRef)...)
	}
	if h.TLS.Key != "" {
		paths = append(paths, h.TLS.Key)
	}
	return paths
}

const methodPost = "POST"

// decodeHTTPSkill reads the runner of a skill that is a web service.
func decodeHTTPSkill(v strictyaml.Value, p paths) *HTTPSkill {
	o := v.Object()
	defer o.Done()
	address := o.Need("url")
	h := &HTTPSkill{
		URL: decodeHTTPURL(address), Method: o.Get("method").Enum(methodPost, "PUT", "PATCH"),
		Headers: decodeHTTPHeaders(o.Get("headers")), AllowAddresses: decodeRanges(o.Get("allowAddresses")),
		TLS: decodeHTTPTLS(o.Get("tls"), p), Timeout: o.Get("timeoutMs").Millis(maxDuration),
		MaxResponseBytes: int(o.Get("maxResponseBytes").Int(1, 1<<30)), Position: v.Position(),
	}
	plain := strings.HasPrefix(h.URL, "http:")
	for _, item := range o.Get("credentials").List() {
		c := item.Object()
		secret := c.Need("secret")
		read := MCPCredential{Header: c.Get("header").Text(), Scheme: c.Get("scheme").Text(), SecretRef: secret.Text()}
		if read.SecretRef != "" && !secretref.Is(read.SecretRef) {
			secret.Fault(secretref.ErrLiteral.Error(), "such as env:SCORER_TOKEN") // without the text, which may be one
			read.SecretRef = ""
		}
		if plain {
			item.Fault("a credential is sent by https only", "use https; tls: {ca: …} names the authority of a certificate of your own")
		}
		h.Credentials = append(h.Credentials, read)
		c.Done()
	}
	if plain && h.TLS != (HTTPTLS{}) {
		o.Get("tls").Fault("the URL is not https", "use https, or remove tls")
	}
	if h.MaxResponseBytes == 0 {
		h.MaxResponseBytes = defaultMaxOutput
	}
	if h.Method == "" {
		h.Method = methodPost
	}
	return h
}

func decodeHTTPURL(v strictyaml.Value) string {
	text := v.Text()
	u, err := url.Parse(text)
	switch {
	case text == "":
	case err != nil || u.Host == "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https":
		v.Fault("expected the URL of a web service", "such as https://scorer.example.com/score")
	case u.User != nil:
		v.Fault("a URL holds no password", "name the secret under credentials")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		v.Fault("the service would be reached without encryption", "use https; http is for the loopback addresses of this machine, such as http://127.0.0.1:8000/score")
	default:
		return text
	}
	return ""
}

// decodeHTTPHeaders reads headers that are no secrets, and that neither belong to the
// connection nor say what agentd says of the call.
func decodeHTTPHeaders(v strictyaml.Value) (all []HTTPHeader) {
	const letters = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for _, e := range v.Entries() {
		name, value := textproto.CanonicalMIMEHeaderKey(e.Name), e.Value.String()
		switch {
		case e.Name == "" || strings.TrimLeft(e.Name, letters) != "":
			e.Value.Fault(fmt.Sprintf("%.64q is no name of a header", e.Name), "")
		case slices.Contains([]string{"Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key"}, name):
			e.Value.Fault("the header "+name+" holds a secret, which a file does not", "name it under credentials: [{header: "+name+", secret: env:…}]")
		case strings.HasPrefix(name, "Agentd-") || strings.HasPrefix(name, "Proxy-") || slices.Contains([]string{
			"Accept", "Accept-Encoding", "Connection", "Content-Length", "Content-Type", "Expect", "Host", "Idempotency-Key", "Keep-Alive",
			"Te", "Traceparent", "Tracestate", "Trailer", "Transfer-Encoding", "Upgrade", "X-Http-Method", "X-Http-Method-Override", "X-Method-Override",
		}, name):
			e.Value.Fault("the header "+name+" is agentd's own", "remove it")
		case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == '\x7f' }):
			e.Value.Fault("the value of a header has no control characters", "")
		default:
			all = append(all, HTTPHeader{Name: name, Value: value})
		}
	}
	return all
}

// decodeRanges reads ranges of addresses.
func decodeRanges(v strictyaml.Value) []string {
	ranges := v.Texts()
	for i, item := range v.List() {
		if _, err := netip.ParsePrefix(ranges[i]); err != nil && ranges[i] != "" {
			item.Fault(fmt.Sprintf("%.64q is no range of addresses", ranges[i]), "write it as 10.1.2.0/24")
		}
	}
	return ranges
}

func decodeHTTPTLS(v strictyaml.Value, p paths) (t HTTPTLS) {
	if !v.Present() {
		return t
	}
	o := v.Object()
	defer o.Done()
	cert, key := o.Get("cert"), o.Get("key")
	t = HTTPTLS{CA: p.carried(o.Get("ca")), Cert: p.carried(cert), Key: p.carried(key), ServerName: o.Get("serverName").Text()}
	if cert.Present() != key.Present() {
		v.Fault("a certificate and its key stand together", "name both with cert and key")
	}
	return t
}
