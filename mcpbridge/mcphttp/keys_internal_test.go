package mcphttp

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// An authority is an issuer without a network: what a clock that tests can turn needs.
type authority struct {
	t       *testing.T
	mu      sync.Mutex // guards the rest
	ids     []string   // of its keys
	answer  func(path string) (int, []byte)
	fetches int
}

func (a *authority) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	status, body := http.StatusOK, []byte(nil)
	if a.answer != nil {
		status, body = a.answer(r.URL.Path)
	}
	if status == 0 {
		return nil, errors.New("no network")
	}
	if body == nil && strings.HasSuffix(r.URL.Path, "/keys") {
		a.fetches++
		var set jose.JSONWebKeySet
		for _, id := range a.ids {
			public, _, err := ed25519.GenerateKey(nil)
			if err != nil {
				a.t.Fatal(err)
			}
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: public, KeyID: id})
		}
		body, _ = json.Marshal(set)
	}
	header := http.Header{}
	if status == http.StatusFound {
		header.Set("Location", "https://elsewhere.example.com/")
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(bytes.NewReader(body)), Header: header, Request: r}, nil
}

func (a *authority) keys() *keys {
	return newKeys(a.t.Context(), OAuth{Issuer: "https://id.example.com", KeysURL: "https://id.example.com/keys", HTTP: &http.Client{Transport: a}}, slog.New(slog.DiscardHandler))
}

// set changes what the issuer has or answers.
func (a *authority) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

func (a *authority) count(of *int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return *of
}

func has(k *keys, id string) (bool, error) {
	found, err := k.find(context.Background(), id)
	return len(found) == 1, err
}

// A new key is found at once, but tokens of keys that do not exist make no more than a few fetches,
// and then one in ten seconds.
func TestKeysThatAreNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &authority{t: t, ids: []string{"one"}}
		k := a.keys()
		defer k.stop()
		if ok, err := has(k, "one"); !ok || err != nil {
			t.Fatal(ok, err)
		}
		a.set(func() { a.ids = append(a.ids, "two") })
		if ok, err := has(k, "two"); !ok || err != nil || a.count(&a.fetches) != 2 {
			t.Error(ok, err)
		}
		for range 100 {
			if ok, err := has(k, "three"); ok || err != nil {
				t.Error(ok, err)
			}
		}
		if n := a.count(&a.fetches); n != 1+keysBurst {
			t.Error(n)
		}
		time.Sleep(keysAgain)
		for range 2 {
			if ok, err := has(k, "three"); ok || err != nil || a.count(&a.fetches) != 2+keysBurst {
				t.Error(ok, err)
			}
		}
	})
}

// Keys are fetched again every hour. Where they cannot be, they are used for a day, and the
// issuer is asked every minute.
func TestKeysAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &authority{t: t, ids: []string{"one", "old"}}
		k := a.keys()
		defer k.stop()
		synctest.Wait()
		a.set(func() { a.ids = []string{"one"} })
		time.Sleep(keysFresh + time.Second)
		if ok, err := has(k, "old"); ok || err != nil {
			t.Error("a key that was withdrawn is accepted: ", ok, err)
		}
		tries := 0
		a.set(func() { a.answer = func(string) (int, []byte) { tries++; return 0, nil } })
		time.Sleep(23 * time.Hour)
		if ok, err := has(k, "one"); !ok || err != nil {
			t.Error("a known key is refused: ", ok, err)
		}
		if n := a.count(&tries); n < 22*60 || n > 25*60 {
			t.Error(n)
		}
		if _, err := has(k, "two"); err == nil {
			t.Error("nobody knows whether there is such a key")
		}
		time.Sleep(3 * time.Hour)
		if ok, err := has(k, "one"); ok || err == nil {
			t.Error("a key is accepted that nobody has vouched for since a day: ", ok, err)
		}
		a.set(func() { a.answer = nil })
		time.Sleep(retryLast + time.Second)
		if ok, err := has(k, "one"); !ok || err != nil {
			t.Error(ok, err)
		}
	})
}

// What an issuer answers is bounded, and nothing but an answer of its own counts.
func TestIssuerThatAnswersBadly(t *testing.T) {
	good := func(keys string) []byte { return []byte(`{"keys":[` + keys + `]}`) }
	_, secret, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	private, err := jose.JSONWebKey{Key: secret, KeyID: "one"}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		url    string
		answer func(path string) (int, []byte)
		part   string
	}{
		"error": {"/keys", func(string) (int, []byte) { return 500, nil }, "answers 500"},
		"redirect": {"/keys", func(path string) (int, []byte) {
			if path == "/keys" {
				return 302, nil
			}
			return 200, good("")
		}, "answers 302"},
		"large":         {"/keys", func(string) (int, []byte) { return 200, bytes.Repeat([]byte(" "), 2<<20) }, "more than 1 MiB"},
		"no JSON":       {"/keys", func(string) (int, []byte) { return 200, []byte("<html>") }, "no such JSON"},
		"no keys":       {"/keys", func(string) (int, []byte) { return 200, good("") }, "no key"},
		"many keys":     {"/keys", func(string) (int, []byte) { return 200, good(strings.Repeat("0,", 200) + "0") }, "more than 100"},
		"a private key": {"/keys", func(string) (int, []byte) { return 200, good(string(private)) }, "no key"},
		"a shared key":  {"/keys", func(string) (int, []byte) { return 200, good(`{"kty":"oct","k":"AAAA"}`) }, "no key"},
		"no metadata":   {"", func(string) (int, []byte) { return 404, nil }, "answers 404"},
		"another's": {"", func(string) (int, []byte) {
			return 200, []byte(`{"issuer":"https://id.example.net","jwks_uri":"https://id.example.net/keys"}`)
		}, "another issuer"},
		"keys in plain": {"", func(string) (int, []byte) {
			return 200, []byte(`{"issuer":"https://id.example.com","jwks_uri":"http://id.example.com/keys"}`)
		}, "jwks_uri"},
		"no place of keys": {"", func(string) (int, []byte) { return 200, []byte(`{"issuer":"https://id.example.com"}`) }, "jwks_uri"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &authority{t: t, answer: row.answer}
			k := &keys{issuer: "https://id.example.com", client: &http.Client{Transport: a}}
			if row.url != "" {
				k.url = k.issuer + row.url
			}
			if _, err := k.fetch(t.Context()); err == nil || !strings.Contains(err.Error(), row.part) {
				t.Error(err)
			}
		})
	}
}
