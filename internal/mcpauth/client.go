package mcpauth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// The ways in which a client proves itself at a token endpoint.
const (
	methodNone  = "none"
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
	methodKey   = "private_key_jwt"
)

// A client is as whom this agent appears at an authorization server.
type client struct {
	ID     string `json:"id"`
	Method string `json:"method"`
	// Secret is one that the authorization server gave at the registration.
	Secret string `json:"secret,omitempty"`
}

// client finds out as whom to appear: as the client that the operator has registered, by a
// metadata document, or as one that is registered now, which the newer revision has deprecated.
func (c *Config) client(ctx context.Context, meta *oauthex.AuthServerMeta, redirect string) (client, error) {
	switch {
	case c.ClientID != "":
		method, err := c.method(meta)
		return client{ID: c.ClientID, Method: method}, err
	case c.Document != "" && meta.ClientIDMetadataDocumentSupported:
		return client{ID: c.Document, Method: methodNone}, nil
	case redirect != "" && meta.RegistrationEndpoint != "":
		return c.register(ctx, meta, redirect)
	}
	return client{}, wrong("the authorization server of the MCP server %s registers nobody by itself: register a client there, and name it as oauth.clientId", c.Name)
}

// method is how the operator's client proves itself.
func (c *Config) method(meta *oauthex.AuthServerMeta) (string, error) {
	supported := meta.TokenEndpointAuthMethodsSupported
	if len(supported) == 0 {
		supported = []string{methodBasic} // RFC 8414 section 2
	}
	switch {
	case c.Key != nil:
		return methodKey, nil
	case c.Secret == nil:
		return methodNone, nil
	case c.Method != "":
		return c.Method, nil
	case slices.Contains(supported, methodBasic):
		return methodBasic, nil
	case slices.Contains(supported, methodPost):
		return methodPost, nil
	}
	return "", wrong("the authorization server of the MCP server %s takes no client secret", c.Name)
}

// register registers a client (RFC 7591), for a login of this redirect.
func (c *Config) register(ctx context.Context, meta *oauthex.AuthServerMeta, redirect string) (client, error) {
	const what = "registration endpoint"
	method := methodBasic
	for _, m := range []string{methodPost, methodBasic, methodNone} { // the last that is supported counts
		if slices.Contains(meta.TokenEndpointAuthMethodsSupported, m) {
			method = m
		}
	}
	a, err := c.post(ctx, what, meta.RegistrationEndpoint, nil, &oauthex.ClientRegistrationMetadata{
		RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: method, ApplicationType: "native", ClientName: "agentd",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
	}, nil)
	if err != nil {
		return client{}, err
	}
	if a.status != http.StatusCreated && a.status != http.StatusOK {
		return client{}, c.refusal(what, a)
	}
	var got struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Method string `json:"token_endpoint_auth_method"`
	}
	if json.Unmarshal(a.body, &got) != nil || got.ID == "" {
		return client{}, wrong("the registration endpoint of the MCP server %s answers with no client", c.Name)
	}
	if got.Method != "" {
		method = got.Method
	}
	if !slices.Contains([]string{methodNone, methodBasic, methodPost}, method) || method != methodNone && got.Secret == "" {
		return client{}, wrong("the authorization server of the MCP server %s has registered a client that cannot prove itself", c.Name)
	}
	if method == methodNone {
		got.Secret = ""
	}
	return client{got.ID, method, got.Secret}, nil
}

// prove adds to a request how the client proves itself.
func (c *Config) prove(who client, issuer string, form url.Values, header map[string]string) error {
	secret := who.Secret
	if who.Secret == "" && (who.Method == methodBasic || who.Method == methodPost) {
		var err error
		if c.Secret == nil {
			return wrong("the secret of the client of the MCP server %s is not there", c.Name)
		}
		if secret, err = c.Secret(); err != nil {
			return &Error{Kind: Wrong, Text: "the secret of the client of the MCP server " + c.Name + " is not there", Err: err}
		}
	}
	if who.Method != methodBasic && who.ID != "" {
		form.Set("client_id", who.ID)
	}
	switch who.Method {
	case methodBasic: // RFC 6749 section 2.3.1
		header["Authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(who.ID)+":"+url.QueryEscape(secret)))
	case methodPost:
		form.Set("client_secret", secret)
	case methodKey:
		assertion, err := c.assert(who.ID, issuer)
		if err != nil {
			return &Error{Kind: Wrong, Text: "the private key of the client of the MCP server " + c.Name + " cannot be used", Err: err}
		}
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", assertion)
	}
	return nil
}

// assertionLife is how long an assertion is good. It is used at once.
const assertionLife = time.Minute

// assert signs an assertion (RFC 7523) for one authorization server.
func (c *Config) assert(id, issuer string) (string, error) {
	if c.Key == nil {
		return "", errors.New("it is not declared any more")
	}
	text, err := c.Key()
	if err != nil {
		return "", err
	}
	key, algorithm, err := parseKey(text)
	if err != nil {
		return "", err
	}
	if c.Algorithm != "" {
		algorithm = jose.SignatureAlgorithm(c.Algorithm)
	}
	options := (&jose.SignerOptions{}).WithType("JWT")
	if c.KeyID != "" {
		options = options.WithHeader("kid", c.KeyID)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, options)
	if err != nil {
		return "", err
	}
	now := time.Now()
	return jwt.Signed(signer).Claims(jwt.Claims{
		Issuer: id, Subject: id, Audience: jwt.Audience{issuer}, ID: rand.Text(),
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(assertionLife)),
	}).Serialize()
}

// parseKey reads a private key in PEM, and says with which algorithm it usually signs. Its
// errors do not show the text.
func parseKey(text string) (crypto.PrivateKey, jose.SignatureAlgorithm, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, "", errors.New("it is not in PEM")
	}
	var key any
	for _, parse := range []func([]byte) (any, error){
		x509.ParsePKCS8PrivateKey,
		func(der []byte) (any, error) { return x509.ParseECPrivateKey(der) },
		func(der []byte) (any, error) { return x509.ParsePKCS1PrivateKey(der) },
	} {
		if found, err := parse(block.Bytes); err == nil {
			key = found
			break
		}
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return k, jose.RS256, nil
	case ed25519.PrivateKey:
		return k, jose.EdDSA, nil
	case *ecdsa.PrivateKey:
		if algorithm, ok := map[int]jose.SignatureAlgorithm{256: jose.ES256, 384: jose.ES384, 521: jose.ES512}[k.Curve.Params().BitSize]; ok {
			return k, algorithm, nil
		}
	}
	return nil, "", errors.New("it is no private key of RSA, ECDSA or Ed25519")
}
