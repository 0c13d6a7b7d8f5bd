package audio_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/audio"
)

const key = "sk-a-very-secret-key"

// wav is a recording, as far as the tool looks.
const wav = "RIFF\x24\x00\x00\x00WAVEfmt silence"

// resolve makes an agent whose workspace has the folder calls with may.wav and notes.txt.
func resolve(t *testing.T, log io.Writer, config map[string]any) (*registry.Resolved, error) {
	t.Helper()
	workspace := t.TempDir()
	calls := filepath.Join(workspace, "calls")
	if err := errors.Join(os.Mkdir(calls, 0o700), os.WriteFile(filepath.Join(calls, "may.wav"), []byte(wav), 0o600),
		os.WriteFile(filepath.Join(calls, "notes.txt"), []byte("a secret"), 0o600), os.WriteFile(filepath.Join(workspace, "out.wav"), []byte(wav), 0o600)); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	reg := registry.New()
	if err := reg.Register(audio.Resolver{}); err != nil {
		t.Fatal(err)
	}
	res, err := reg.Resolve(registry.Context{
		Context: t.Context(), Agent: "listener", WorkspaceDir: workspace, Logger: slog.New(slog.NewTextHandler(log, nil)),
		Secret: func(_ context.Context, ref string) (string, error) {
			if ref != "env:KEY" {
				return "", errors.New("the variable is not set")
			}
			return key, nil
		},
	}, []registry.Capability{{Key: "audio", Config: encoded}})
	if err == nil {
		t.Cleanup(func() { _ = res.Close(context.Background()) })
	}
	return res, err
}

func start(t *testing.T, log io.Writer, config map[string]any) *registry.Resolved {
	t.Helper()
	res, err := resolve(t, log, config)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// endpoint serves handler over TLS, and returns a configuration that reaches it.
func endpoint(t *testing.T, handler http.HandlerFunc) map[string]any {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]any{"endpoint": server.URL + "/v1/", "caFile": ca, "apiKey": "env:KEY", "dirs": []string{"calls"}}
}

func call(res *registry.Resolved, args string) (text string, result *mcp.CallToolResult) {
	result = res.Call(context.Background(), "transcribe", json.RawMessage(args))
	return result.Content[0].(*mcp.TextContent).Text, result
}

func TestTranscribe(t *testing.T) {
	type request struct {
		path, auth, file, name string
		fields                 map[string][]string
	}
	var got request
	config := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		file, header, err := r.FormFile("file")
		if err != nil {
			t.Error(err)
			return
		}
		content, err := io.ReadAll(file)
		if err != nil {
			t.Error(err)
		}
		got = request{r.URL.Path, r.Header.Get("Authorization"), string(content), header.Filename, r.MultipartForm.Value}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"text": "good morning", "task": "transcribe", "language": "english", "duration": 1.50, "segments": [{"id": 0, "start": 0, "end": 1.5, "text": "good morning", "tokens": [1]}], "echo": %q}`, key)
	})
	config["model"] = "whisper-large"
	res := start(t, io.Discard, config)
	text, _ := call(res, `{"path": "calls/may.wav", "language": "en", "prompt": "Ada", "timestamps": true}`)
	if want := `{"text":"good morning","language":"english","duration":1.5,"segments":[{"start":0,"end":1.5,"text":"good morning"}]}`; text != want {
		t.Errorf("got %s", text)
	}
	if got.path != "/v1/audio/transcriptions" || got.auth != "Bearer "+key || got.file != wav || got.name != "recording.wav" {
		t.Errorf("%+v", got)
	}
	if f := fmt.Sprint(got.fields); f != "map[language:[en] model:[whisper-large] prompt:[Ada] response_format:[verbose_json]]" {
		t.Error(f)
	}
	data := base64.StdEncoding.EncodeToString([]byte(wav))
	if _, result := call(res, `{"data": "`+data+`"}`); result.IsError || got.file != wav || fmt.Sprint(got.fields["response_format"]) != "[json]" {
		t.Errorf("%+v, %+v", result, got)
	}
}

// The endpoint gets recordings from the named folders, and nothing else of this machine.
func TestNothingElseIsSent(t *testing.T) {
	config := endpoint(t, func(http.ResponseWriter, *http.Request) { t.Error("something was sent") })
	config["maxBytes"] = 100
	res := start(t, io.Discard, config)
	for args, want := range map[string]registry.Code{
		`{"path": "calls/notes.txt"}`:    registry.Unsupported,
		`{"path": "calls/../out.wav"}`:   registry.InvalidArguments,
		`{"path": "out.wav"}`:            registry.NotFound,
		`{"path": "/etc/passwd"}`:        registry.InvalidArguments,
		`{"path": "calls/none.wav"}`:     registry.NotFound,
		`{"path": "calls"}`:              registry.InvalidArguments,
		`{}`:                             registry.InvalidArguments,
		`{"path": "x", "data": "YWJj"}`:  registry.InvalidArguments,
		`{"data": "no base64!"}`:         registry.InvalidArguments,
		`{"data": "YWJj"}`:               registry.Unsupported,
		`{"path": "x", "language": "e"}`: registry.InvalidArguments,
		`{"data": "` + base64.StdEncoding.EncodeToString([]byte(wav+strings.Repeat("x", 100))) + `"}`: registry.TooLarge,
		`{"path": "calls/may.wav", "endpoint": "https://evil.test"}`:                                  registry.InvalidArguments,
	} {
		if text, result := call(res, args); registry.FailureCode(result) != want {
			t.Errorf("%s: %s, want %s", args, text, want)
		}
	}
	delete(config, "dirs")
	if text, result := call(start(t, io.Discard, config), `{"path": "calls/may.wav"}`); registry.FailureCode(result) != registry.Unsupported {
		t.Errorf("without folders: %s", text)
	}
}

// What goes wrong at the endpoint has a code, and its words reach the log alone.
func TestEndpointFails(t *testing.T) {
	var log bytes.Buffer
	var status int
	var contentType, body string
	config := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Location", "https://evil.test/")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	})
	res := start(t, &log, config)
	for _, c := range []struct {
		status            int
		contentType, body string
		want              registry.Code
	}{
		{400, "application/json", `{"error": "account 17"}`, registry.Failed},
		{401, "application/json", `{"error": "account 17 and ` + key + `"}`, registry.Unavailable},
		{413, "application/json", `{}`, registry.TooLarge},
		{429, "application/json", `{}`, registry.RateLimitExceeded},
		{500, "text/html", `account 17`, registry.Unavailable},
		{307, "application/json", ``, registry.Unavailable},
		{200, "application/json", `{"text": 17}`, registry.Unavailable},
		{200, "application/json", `{}`, registry.Unavailable},
		{200, "application/json", `not JSON, account 17`, registry.Unavailable},
		{200, "application/json", `{"text": "` + strings.Repeat("x", 2<<20) + `"}`, registry.Unavailable},
	} {
		status, contentType, body = c.status, c.contentType, c.body
		text, result := call(res, `{"path": "calls/may.wav"}`)
		if registry.FailureCode(result) != c.want || strings.Contains(text, "17") {
			t.Errorf("%d %.40s: %s", c.status, c.body, text)
		}
	}
	if s := log.String(); !strings.Contains(s, "account 17") || strings.Contains(s, key) {
		t.Errorf("the log: %s", s)
	}
	status, body = 200, `{"text": "again"}`
	if text, _ := call(res, `{"path": "calls/may.wav"}`); text != `{"text":"again"}` {
		t.Errorf("it does not heal: %s", text)
	}
}

func TestTimeout(t *testing.T) {
	config := endpoint(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	config["timeoutMs"] = 100
	if text, result := call(start(t, io.Discard, config), `{"path": "calls/may.wav"}`); registry.FailureCode(result) != registry.Timeout {
		t.Error(text)
	}
}

// Few recordings are in memory at once, however many calls there are.
func TestAtOnce(t *testing.T) {
	const most, calls = 4, 10
	var mu sync.Mutex
	running, peak := 0, 0
	full, next := make(chan struct{}), make(chan struct{})
	closeFull := sync.OnceFunc(func() { close(full) })
	config := endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		running++
		peak = max(peak, running)
		if running == most {
			closeFull()
		}
		mu.Unlock()
		<-next
		mu.Lock()
		running--
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"text": ""}`)
	})
	res := start(t, io.Discard, config)
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			if text, result := call(res, `{"path": "calls/may.wav"}`); result.IsError {
				t.Error(text)
			}
		})
	}
	select {
	case <-full:
	case <-time.After(time.Minute):
		t.Fatal("too few run")
	}
	for range calls {
		select {
		case next <- struct{}{}:
		case <-time.After(time.Minute):
			t.Fatal("nothing runs")
		}
	}
	all.Wait()
	if peak > most {
		t.Errorf("%d ran at once", peak)
	}
}

func TestConfiguration(t *testing.T) {
	res := start(t, io.Discard, map[string]any{"tools": []string{"transcribe"}})
	if st := res.Status(); len(st) != 1 || !strings.Contains(st[0].Skipped, "endpoint") || len(res.Tools()) != 0 {
		t.Errorf("%+v", st)
	}
	for want, config := range map[string]map[string]any{
		"not a base URL":       {"endpoint": "api.openai.com"},
		"base URL":             {"endpoint": "https://user:password@a.test/v1"},
		"encryption":           {"endpoint": "http://a.test/v1", "apiKey": "env:KEY"},
		"not set":              {"endpoint": "https://a.test/v1", "apiKey": "env:OTHER"},
		"no such file":         {"endpoint": "https://a.test/v1", "dirs": []string{"nowhere"}},
		"range of addresses":   {"endpoint": "https://a.test/v1", "allowAddresses": []string{"x"}},
		"unknown property":     {"endpoint": "https://a.test/v1", "key": key},
		"no name for a folder": {"endpoint": "https://a.test/v1", "dirs": []string{"/"}},
	} {
		_, err := resolve(t, io.Discard, config)
		if want == "unknown property" && err != nil {
			continue // in the words of the schema
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "password") {
			t.Errorf("%v: %v", config, err)
		}
	}
}

func TestFormats(t *testing.T) {
	var name string
	config := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		if _, header, err := r.FormFile("file"); err == nil {
			name = header.Filename
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"text": ""}`)
	})
	res := start(t, io.Discard, config)
	for content, want := range map[string]string{
		wav: "recording.wav", "fLaC\x00": "recording.flac", "OggS\x00": "recording.ogg", "\x00\x00\x00\x20ftypM4A ": "recording.m4a",
		"\x1aE\xdf\xa3x": "recording.webm", "ID3\x04": "recording.mp3", "\xff\xfb\x90\x64": "recording.mp3",
		"\xff\xfeh\x00i\x00":       "", // text in UTF-16
		"RIFF\x00\x00\x00\x00AVI ": "", "\x7fELF": "", "%PDF-1.7": "", "{}": "", "x": "", "ftyp": "",
	} {
		name = ""
		call(res, `{"data": "`+base64.StdEncoding.EncodeToString([]byte(content))+`"}`)
		if name != want {
			t.Errorf("%q is sent as %q, want %q", content, name, want)
		}
	}
}
