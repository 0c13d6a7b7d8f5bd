package cli_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
)

func TestPayload(t *testing.T) {
	env := clitest.New(t, "-- good.json --\n{\"from\": \"file\"}\n-- bad.json --\n{\"from\"\n")
	env.Stdin = strings.NewReader(`{"from":"stdin"}`)
	for arg, want := range map[string]string{
		`{"n":1.0}`: `{"n":1.0}`, `null`: `null`, ` "x" `: ` "x" `,
		"@" + filepath.Join(env.Dir, "good.json"): "{\"from\": \"file\"}\n",
		"-": `{"from":"stdin"}`,
	} {
		if got, err := env.Payload(arg); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", arg, got, err, want)
		}
	}
	for arg, want := range map[string]string{
		"":                                       "the payload is not JSON",
		`{"a"`:                                   "the payload is not JSON; give it as an argument in quotes, as @file, or as -",
		`{} {}`:                                  "the payload is not JSON",
		"@":                                      "no such file",
		"@/no/it":                                "/no/it",
		"@" + filepath.Join(env.Dir, "bad.json"): "bad.json is not JSON",
		"-":                                      "standard input is not JSON", // read to its end before
	} {
		if got, err := env.Payload(arg); err == nil || !strings.Contains(err.Error(), want) || clitest.Code(err) != cli.ExitFailed {
			t.Errorf("%q: %s, %v; want %q", arg, got, err, want)
		}
	}
}

// An endless input is not read to its end.
func TestPayloadIsBounded(t *testing.T) {
	env := clitest.New(t, "")
	endless := &countingReader{}
	env.Stdin = endless
	if _, err := env.Payload("-"); err == nil || !strings.Contains(err.Error(), "standard input: larger than 31 MiB") {
		t.Errorf("%v", err)
	}
	if endless.n > control.MaxRequestBytes {
		t.Errorf("read %d bytes", endless.n)
	}
}

// A countingReader is an endless JSON string.
type countingReader struct{ n int }

func (r *countingReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '1'
	}
	r.n += len(p)
	return len(p), nil
}

var _ io.Reader = (*countingReader)(nil)

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := cli.ReadFile(path, 5); err != nil || string(text) != "12345" {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := cli.ReadFile(path, 4); err == nil || !strings.Contains(err.Error(), "larger than 4 bytes") {
		t.Errorf("%v", err)
	}
}
