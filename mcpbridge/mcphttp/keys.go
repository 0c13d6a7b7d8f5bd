package mcphttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/time/rate"
)

const (
	keysFresh    = time.Hour        // how long keys are used before they are fetched again
	keysUsable   = 24 * time.Hour   // how long they are used if they cannot be: a key that was withdrawn lives on for so long
	keysAgain    = 10 * time.Second // between fetches that tokens cause, after the first few
	keysBurst    = 3                // of them: an issuer may change its keys when it likes
	retryFirst   = time.Second      // between fetches that fail, doubling
	retryLast    = time.Minute
	fetchTimeout = 10 * time.Second
	maxDocument  = 1 << 20
	maxKeys      = 100
)

// keys are the public keys of an issuer. One goroutine fetches them, until stop: at once, every
// hour, when a token names a key that they lack, and, as long as the issuer cannot be reached,
// again and again.
type keys struct {
	issuer, url string
	client      *http.Client // as it was configured; nil is the default
	log         *slog.Logger
	kick        chan struct{}
	cancel      context.CancelFunc
	done        chan struct{}

	mu      sync.Mutex
	set     jose.JSONWebKeySet
	fetched time.Time     // when set came; zero before the first
	asks    *rate.Limiter // of fetches that tokens cause
	next    chan struct{} // closed when the next fetch ends
	running bool
	failed  error     // of the last fetch
	since   time.Time // of the first that failed
}

func newKeys(ctx context.Context, cfg OAuth, log *slog.Logger) *keys {
	ctx, cancel := context.WithCancel(ctx)
	k := &keys{
		issuer: cfg.Issuer, url: cfg.KeysURL, client: cfg.HTTP, log: log, cancel: cancel,
		kick: make(chan struct{}, 1), done: make(chan struct{}), next: make(chan struct{}), running: true,
		asks: rate.NewLimiter(rate.Every(keysAgain), keysBurst),
	}
	go k.run(ctx)
	return k
}

// stop ends the goroutine and waits for it.
func (k *keys) stop() {
	k.cancel()
	<-k.done
}

// find returns the keys of an id, all keys for a token that names none. An error means that
// nobody can say now whether there is such a key.
func (k *keys) find(ctx context.Context, id string) ([]jose.JSONWebKey, error) {
	found, next, err := k.look(id)
	if next == nil {
		return found, err
	}
	select {
	case <-next:
		found, _, err = k.look(id)
		return found, err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-k.done:
		return nil, errors.New("the keys are no longer fetched")
	}
}

// look looks for keys in those that are there. If it finds none and a fetch may help, it
// returns the channel that is closed when that has ended.
func (k *keys) look(id string) (found []jose.JSONWebKey, next <-chan struct{}, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.fetched.IsZero() && time.Since(k.fetched) < keysUsable {
		if found = k.set.Keys; id != "" {
			found = k.set.Key(id)
		}
		if len(found) > 0 {
			return found, nil, nil
		}
	}
	if !k.running && k.asks.Allow() {
		select {
		case k.kick <- struct{}{}:
		default:
		}
		k.running = true
	}
	if k.running {
		next = k.next
	}
	return nil, next, k.failed
}

// run fetches the keys whenever it is time.
func (k *keys) run(ctx context.Context) {
	defer close(k.done)
	pause := retryFirst
	for {
		set, err := k.fetch(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := keysFresh
		if err != nil {
			wait, pause = pause, min(2*pause, retryLast)
		} else {
			pause = retryFirst
		}
		k.store(ctx, set, err)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			k.mu.Lock()
			k.running = true
			k.mu.Unlock()
		case <-k.kick:
			timer.Stop()
		}
	}
}

// store keeps the outcome of a fetch, and says when failures begin and when they end.
func (k *keys) store(ctx context.Context, set *jose.JSONWebKeySet, err error) {
	k.mu.Lock()
	before := k.failed
	k.failed, k.running = err, false
	if before == nil {
		k.since = time.Now()
	}
	if err == nil {
		k.set, k.fetched = *set, time.Now()
	}
	close(k.next)
	k.next = make(chan struct{})
	k.mu.Unlock()
	switch {
	case err != nil && before == nil:
		k.log.LogAttrs(ctx, slog.LevelWarn, "the keys of the OAuth issuer cannot be had: access tokens of keys that are not known yet are refused until they can", slog.String("issuer", k.issuer), slog.Any("error", err))
	case err == nil && before != nil:
		k.log.LogAttrs(ctx, slog.LevelInfo, "the keys of the OAuth issuer can be had again", slog.String("issuer", k.issuer))
	}
}

// fault is why the keys cannot be had, and since when; nil if they can.
func (k *keys) fault() (since time.Time, cause error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.since, k.failed
}

// fetch fetches the keys from where the configuration or the issuer's metadata say.
func (k *keys) fetch(ctx context.Context) (*jose.JSONWebKeySet, error) {
	at := k.url
	if at == "" {
		var err error
		if at, err = k.discover(ctx); err != nil {
			return nil, err
		}
	}
	var document struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := k.get(ctx, at, &document); err != nil {
		return nil, err
	}
	if len(document.Keys) > maxKeys {
		return nil, fmt.Errorf("%s lists more than %d keys", at, maxKeys)
	}
	set := new(jose.JSONWebKeySet)
	for _, raw := range document.Keys {
		var key jose.JSONWebKey
		// A key of a kind that is not known here does no harm to the others. One that is not
		// public is not for checking signatures.
		if key.UnmarshalJSON(raw) == nil && key.Valid() && key.IsPublic() {
			set.Keys = append(set.Keys, key)
		}
	}
	if len(set.Keys) == 0 {
		return nil, fmt.Errorf("%s lists no key that can be used", at)
	}
	return set, nil
}

// discover asks the issuer where its keys are.
func (k *keys) discover(ctx context.Context) (string, error) {
	u, err := url.Parse(k.issuer)
	if err != nil {
		return "", err
	}
	path := strings.TrimSuffix(u.Path, "/")
	var errs []error
	for _, at := range []string{
		"/.well-known/oauth-authorization-server" + path, // RFC 8414 section 3.1
		path + "/.well-known/openid-configuration",
	} {
		var document struct {
			Issuer  string `json:"issuer"`
			KeysURL string `json:"jwks_uri"`
		}
		u.Path = at
		if err := k.get(ctx, u.String(), &document); err != nil {
			errs = append(errs, err)
			continue
		}
		if document.Issuer != k.issuer { // RFC 8414 section 3.3
			errs = append(errs, fmt.Errorf("%s is the metadata of another issuer", u))
			continue
		}
		if validURL(withoutQuery(document.KeysURL)) != nil {
			errs = append(errs, fmt.Errorf("%s names no usable jwks_uri", u))
			continue
		}
		return document.KeysURL, nil
	}
	return "", errors.Join(errs...)
}

// get fetches a JSON document. It follows no redirect: the configuration says where it is.
func (k *keys) get(ctx context.Context, at string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json, application/jwk-set+json")
	client := http.Client{}
	if k.client != nil {
		client = *k.client
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %d", at, resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	if len(body) > maxDocument {
		return fmt.Errorf("%s answers with more than 1 MiB", at)
	}
	if json.Unmarshal(body, into) != nil {
		return fmt.Errorf("%s answers with no such JSON document", at)
	}
	return nil
}
