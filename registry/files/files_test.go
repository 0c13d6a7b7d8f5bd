package files_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/registry"
	"github.com/agentd/agentd/registry/files"
)

func resolve(t *testing.T, workspace, config string) (*registry.Resolved, error) {
	t.Helper()
	known := registry.New()
	if err := known.Register(files.Resolver{}); err != nil {
		t.Fatal(err)
	}
	agent, err := known.Resolve(registry.Context{Context: t.Context(), WorkspaceDir: workspace}, []registry.Capability{{Key: "files", Config: json.RawMessage(config)}})
	if err == nil {
		t.Cleanup(func() { agent.Close(context.WithoutCancel(t.Context())) })
	}
	return agent, err
}

// call shows the result, or the code of the error.
func call(t *testing.T, agent *registry.Resolved, tool, args string) string {
	t.Helper()
	result := agent.Call(t.Context(), tool, json.RawMessage(args))
	if code := registry.FailureCode(result); code != "" {
		return string(code)
	}
	return fmt.Sprintf("%s", result.StructuredContent)
}

// folders makes reports and other, with a secret beside them.
func folders(t *testing.T) (base string) {
	t.Helper()
	base = t.TempDir()
	for name, content := range map[string]string{"reports/2026/may.csv": "a,b\n1,2\n", "other/x.txt": "a <b>", "secret": "what lies outside", "other/bin": "\xff"} {
		path := filepath.Join(base, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../secret", filepath.Join(base, "other", "up")); err != nil {
		t.Fatal(err)
	}
	return base
}

func TestTools(t *testing.T) {
	base := folders(t)
	agent, err := resolve(t, base, `{"dirs": ["`+base+`/reports", "other"], "write": true}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range [][3]string{
		{"list_files", `{}`, `{"entries":[{"name":"other","type":"folder","size":0},{"name":"reports","type":"folder","size":0}],"truncated":false}`},
		{"list_files", ``, `{"entries":[{"name":"other","type":"folder","size":0},{"name":"reports","type":"folder","size":0}],"truncated":false}`},
		{"list_files", `{"path": "other", "limit": 1, "after": "bin"}`, `{"entries":[{"name":"up","type":"link","size":0}],"truncated":true}`},
		{"read_file", `{"path": "reports/2026/may.csv"}`, `{"bytes":8,"content":"a,b\n1,2\n"}`},
		{"read_file", `{"path": "other/bin", "encoding": "base64"}`, `{"bytes":1,"content":"/w=="}`},
		{"read_file", `{"path": "other/bin"}`, "unsupported"},
		{"search_files", `{"text": "a"}`, `{"matches":[{"path":"other/x.txt","line":1,"text":"a \u003cb\u003e"},{"path":"reports/2026/may.csv","line":1,"text":"a,b"}],"truncated":false}`},
		{"search_files", `{"text": "outside", "path": "other"}`, `{"matches":[],"truncated":false}`},
		{"write_file", `{"path": "other/new/y", "content": "` + `/w==", "encoding": "base64"}`, `{"bytes":1}`},
		{"write_file", `{"path": "other/new/y", "content": "again"}`, "permission_denied"},
		{"write_file", `{"path": "other/new/y", "content": "again", "overwrite": true}`, `{"bytes":5}`},
		{"read_file", `{"path": "other/new/y"}`, `{"bytes":5,"content":"again"}`},
		{"write_file", `{"path": "other/z", "content": "!", "encoding": "base64"}`, "invalid_arguments"},
		{"write_file", `{"path": "other/../secret", "content": ""}`, "invalid_arguments"},
		{"write_file", `{"path": "secret", "content": "", "overwrite": true}`, "not_found"},
		{"read_file", `{"path": "other/../secret"}`, "invalid_arguments"},
		{"read_file", `{"path": "` + base + `/secret"}`, "invalid_arguments"},
		{"read_file", `{"path": "/proc/self/environ"}`, "invalid_arguments"},
		{"read_file", `{"path": "other/up"}`, "permission_denied"},
		{"read_file", `{"path": "none/x"}`, "not_found"},
		{"read_file", `{}`, "invalid_arguments"},
		{"read_file", `{"path": "other/x.txt", "encoding": "utf-16"}`, "invalid_arguments"},
		{"list_files", `{"path": "other/up"}`, "permission_denied"},
		{"list_files", `{"limit": 100000}`, "invalid_arguments"},
		{"search_files", `{"text": "a\nb"}`, "invalid_arguments"},
		{"search_files", `{"text": "a", "path": ".."}`, "invalid_arguments"},
	} {
		if got := call(t, agent, row[0], row[1]); !same(got, row[2]) {
			t.Errorf("%s %s:\ngot  %s\nwant %s", row[0], row[1], got, row[2])
		}
	}
	if got, err := os.ReadFile(filepath.Join(base, "secret")); err != nil || string(got) != "what lies outside" {
		t.Errorf("outside there is %q, %v", got, err)
	}
}

// same compares JSON, without the times of files.
func same(a, b string) bool {
	clean := func(text string) string {
		var v any
		if json.Unmarshal([]byte(text), &v) != nil {
			return text
		}
		if m, ok := v.(map[string]any); ok {
			entries, _ := m["entries"].([]any)
			for _, e := range entries {
				delete(e.(map[string]any), "modified")
			}
		}
		return fmt.Sprint(v)
	}
	return clean(a) == clean(b)
}

// The seed's own entry: one folder, and one tool. The rest was never registered.
func TestOneTool(t *testing.T) {
	base := folders(t)
	agent, err := resolve(t, "", `{"dirs": ["`+base+`/reports"], "tools": ["read_file"]}`)
	if err != nil {
		t.Fatal(err)
	}
	if len(agent.Tools()) != 1 || agent.Tools()[0].Name != "read_file" {
		t.Errorf("there are %v", agent.Tools())
	}
	if got := call(t, agent, "read_file", `{"path": "reports/2026/may.csv"}`); !strings.Contains(got, "1,2") {
		t.Error(got)
	}
	if got := call(t, agent, "write_file", `{"path": "reports/x", "content": ""}`); got != "not_found" {
		t.Error(got)
	}
}

func TestConfigIsRefused(t *testing.T) {
	base := folders(t)
	for config, want := range map[string]string{
		`{}`:                   "no folder is named",
		`{"dirs": []}`:         "dirs",
		`{"dirs": ["/"]}`:      "root of the file system",
		`{"dirs": ["none"]}`:   "no such file",
		`{"dirs": ["secret"]}`: "not a directory",
		`{"dirs": ["other", "` + base + `/../` + filepath.Base(base) + `/other"]}`: "two folders",
		`{"dirs": ["other"], "folders": {"other": "reports"}}`:                     "two folders",
		`{"folders": {"": "other"}}`:                                               "no name",
		`{"folders": {"a/b": "other"}}`:                                            "no name for a folder",
		`{"dirs": ["other"], "tools": ["write_file"]}`:                             "write_file",
		`{"dirs": ["other"], "write": "yes"}`:                                      "write",
	} {
		if _, err := resolve(t, base, config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
}
