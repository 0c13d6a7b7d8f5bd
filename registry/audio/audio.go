package audio

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"net/url"
	"path/filepath"
	"time"

	"github.com/agentd/agentd/internal/netguard"
	"github.com/agentd/agentd/internal/rootfs"
	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/internal/toolerror"
)

// The bounds of a configuration that sets none, and how many recordings are on their way
// at once: each is in memory.
const (
	defaultMaxBytes = 25 << 20 // what OpenAI takes
	defaultTimeout  = 2 * time.Minute
	maxAtOnce       = 4
)

const configSchema = `{
  "type": "object",
  "properties": {
    "endpoint": {"type": "string", "minLength": 1, "description": "the base URL of the API, such as https://api.openai.com/v1"},
    "model": {"type": "string", "minLength": 1, "default": "whisper-1"},
    "apiKey": {"type": "string", "minLength": 1, "description": "a reference to a secret, such as env:OPENAI_API_KEY"},
    "dirs": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "uniqueItems": true, "description": "folders that recordings may come from"},
    "allowAddresses": {"type": "array", "items": {"type": "string"}, "description": "ranges that the endpoint may be in although they are not public"},
    "caFile": {"type": "string", "minLength": 1},
    "maxBytes": {"type": "integer", "minimum": 1, "maximum": 104857600, "default": 26214400, "description": "of a recording"},
    "timeoutMs": {"type": "integer", "minimum": 1, "maximum": 600000, "default": 120000}
  },
  "additionalProperties": false
}`

// config is what an agent's file says.
type config struct {
	Endpoint       string   `json:"endpoint"`
	Model          string   `json:"model"`
	APIKey         string   `json:"apiKey"`
	Dirs           []string `json:"dirs"`
	AllowAddresses []string `json:"allowAddresses"`
	CAFile         string   `json:"caFile"`
	MaxBytes       int64    `json:"maxBytes"`
	TimeoutMs      int64    `json:"timeoutMs"`
}

// A Resolver is the capability.
type Resolver struct{}

var _ registry.Resolver = Resolver{}

// Key implements [registry.Resolver].
func (Resolver) Key() string { return "audio" }

const transcribe = "transcribe"

const description = "Turns a recording into text. It is a file of one of this agent's folders (path), or its bytes in base64 (data)."

// Tools implements [registry.Resolver].
func (Resolver) Tools() []registry.Tool {
	return []registry.Tool{{Key: transcribe, Name: "Transcribe Audio", Description: description}}
}

// ConfigSchema implements [registry.Resolver].
func (Resolver) ConfigSchema() json.RawMessage { return json.RawMessage(configSchema) }

const input = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "begins with the name of a folder"},
    "data": {"type": "string", "minLength": 1, "description": "in base64"},
    "language": {"type": "string", "pattern": "^[a-z]{2,3}$", "description": "what is spoken, as in ISO 639: en, de"},
    "prompt": {"type": "string", "maxLength": 1000, "description": "names and words that occur"},
    "timestamps": {"type": "boolean", "default": false}
  },
  "additionalProperties": false
}`

const output = `{
  "type": "object",
  "properties": {
    "text": {"type": "string"},
    "language": {"type": "string"},
    "duration": {"type": "number", "description": "seconds"},
    "segments": {"type": "array", "items": {
      "type": "object",
      "properties": {"start": {"type": "number"}, "end": {"type": "number"}, "text": {"type": "string"}},
      "required": ["start", "end", "text"],
      "additionalProperties": false
    }}
  },
  "required": ["text"],
  "additionalProperties": false
}`

// Resolve implements [registry.Resolver].
func (r Resolver) Resolve(ctx registry.Context, c registry.Config) (*registry.Server, error) {
	conf := config{Model: "whisper-1", MaxBytes: defaultMaxBytes}
	if err := json.Unmarshal(c.JSON, &conf); err != nil {
		return nil, err
	}
	if conf.Endpoint == "" {
		return nil, registry.Skip("no endpoint is configured: name one that speaks OpenAI's API under endpoint")
	}
	timeout := cmp.Or(time.Duration(conf.TimeoutMs)*time.Millisecond, defaultTimeout)
	target, client, err := reach(ctx, conf, timeout)
	if err != nil {
		return nil, err
	}
	s := registry.NewServer("audio", "1", c.Tools)
	s.OnClose(func() error { client.Close(); return nil })
	t := &transcriber{client: client, url: target, model: conf.Model, maxBytes: conf.MaxBytes, slots: make(chan struct{}, maxAtOnce)}
	if len(conf.Dirs) > 0 {
		if t.files, err = open(ctx.WorkspaceDir, conf); err != nil {
			return nil, errors.Join(&registry.ConfigError{Pointer: "/dirs", Message: err.Error()}, s.Close())
		}
		s.OnClose(func() error { t.files.Close(); return nil })
	}
	err = s.Add(registry.ToolSpec{
		Key: transcribe, Title: "Transcribe Audio", Description: description, ReadOnly: true, OpenWorld: true,
		Input: json.RawMessage(input), Output: json.RawMessage(output),
		Timeout: timeout + 10*time.Second, // reading, and waiting for others
	}, toolerror.Handler(ctx.Logger, transcribe, t.transcribe))
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// reach makes the client of the endpoint, which reaches nothing else.
func reach(ctx registry.Context, conf config, timeout time.Duration) (target string, client *netguard.Client, err error) {
	bad := func(pointer, message, hint string) error {
		return &registry.ConfigError{Pointer: pointer, Message: message, Hint: hint}
	}
	u, err := url.Parse(conf.Endpoint)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", nil, bad("/endpoint", "the endpoint is not a base URL", "write it as https://api.openai.com/v1")
	}
	guard := netguard.Config{Hosts: []string{u.Host}, AllowAddresses: conf.AllowAddresses, ContentTypes: []string{"application/json"}, MaxRedirects: new(int)}
	if conf.CAFile != "" {
		guard.CAFile = below(ctx.WorkspaceDir, conf.CAFile)
	}
	// Whoever writes the number of an address means that one.
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
		guard.AllowAddresses = append(guard.AllowAddresses, netip.PrefixFrom(addr, addr.BitLen()).String())
	}
	if conf.APIKey != "" {
		if u.Scheme != "https" {
			return "", nil, bad("/apiKey", "the key would be sent without encryption", "use an https endpoint, or take the key out")
		}
		guard.Credentials = []netguard.CredentialConfig{{Host: u.Host, Scheme: "Bearer", Secret: conf.APIKey}}
	}
	policy, err := guard.Policy(toolerror.Secret(ctx))
	if err != nil {
		return "", nil, bad("", err.Error(), "")
	}
	policy.Timeout = timeout
	if client, err = netguard.New(policy); err != nil {
		return "", nil, bad("/endpoint", err.Error(), "")
	}
	return u.JoinPath("audio", "transcriptions").String(), client, nil
}

// open opens the folders, each by its last name.
func open(workspace string, conf config) (*rootfs.Tree, error) {
	folders := make([]rootfs.Folder, len(conf.Dirs))
	for i, dir := range conf.Dirs {
		path := below(workspace, dir)
		folders[i] = rootfs.Folder{Name: filepath.Base(path), Path: path}
	}
	return rootfs.Open(folders, rootfs.Options{MaxBytes: conf.MaxBytes})
}

func below(workspace, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(workspace, path)
}

// acquire waits for a slot. release gives it back.
func (t *transcriber) acquire(ctx context.Context) (release func(), err error) {
	select {
	case t.slots <- struct{}{}:
		return func() { <-t.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
