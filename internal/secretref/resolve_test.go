package secretref_test

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/internal/secretref"
)

func environment(name string) string {
	return map[string]string{"TOKEN": "t0p", "ODD": "a b/c"}[name]
}

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestResolve(t *testing.T) {
	for ref, want := range map[string]string{
		"env:TOKEN":                          "t0p",
		"file:" + write(t, "s3cret\n"):       "s3cret",
		"file:" + write(t, "two\nlines\r\n"): "two\nlines",
	} {
		got, err := secretref.Resolve(ref, environment)
		if err != nil || got != want {
			t.Errorf("Resolve(%s) = %q, %v; want %q", ref, got, err, want)
		}
	}
}

func TestResolveErrors(t *testing.T) {
	for ref, want := range map[string]string{
		"env:ABSENT":                                   "ABSENT is not set",
		"file:/no/such/file":                           "no such file",
		"file:" + write(t, "\n"):                       "is empty",
		"file:" + t.TempDir():                          "not a regular file",
		"file:" + write(t, strings.Repeat("x", 1<<20)): "at most",
	} {
		if got, err := secretref.Resolve(ref, environment); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Resolve(%s) = %q, %v; want an error with %q", ref, got, err, want)
		}
	}
}

func TestLiteralIsRefusedAndNotShown(t *testing.T) {
	for _, literal := range []string{"hunter2", "", "env:", "file:", "vault:x"} {
		_, err := secretref.Resolve(literal, environment)
		if !errors.Is(err, secretref.ErrLiteral) {
			t.Errorf("Resolve(%q): %v, want ErrLiteral", literal, err)
		}
		if literal == "hunter2" && strings.Contains(err.Error(), literal) {
			t.Errorf("the error shows the secret: %v", err)
		}
	}
}

func TestExpand(t *testing.T) {
	got, err := secretref.Expand("nats://u:${env:ODD}@h:${env:TOKEN}/", environment, url.QueryEscape)
	if want := "nats://u:a+b%2Fc@h:t0p/"; err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	for _, bad := range []string{"${", "${env:TOKEN", "${HOME}", "${env:ABSENT}"} {
		if got, err := secretref.Expand(bad, environment, nil); err == nil {
			t.Errorf("Expand(%q) = %q, want an error", bad, got)
		}
	}
}

func TestFiles(t *testing.T) {
	for text, want := range map[string]string{
		"file:/run/a b": "/run/a b", "env:NAME": "", "": "", "nats://u:${file:/run/p}@h,tls://${env:X}${file:/run/q}": "/run/p /run/q", "${file:/open": "",
	} {
		if got := strings.Join(secretref.Files(text), " "); got != want {
			t.Errorf("Files(%q) = %q, want %q", text, got, want)
		}
	}
}
