package fileread_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/action"
	"github.com/agentd/agentd/action/fileread"
	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/rootfs"
	"github.com/agentd/agentd/schema"
)

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, c fileread.Config) *fileread.Handler {
	t.Helper()
	h, err := fileread.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func TestFileRead(t *testing.T) {
	var definition struct {
		Parameters json.RawMessage
		Returns    json.RawMessage
	}
	if err := json.Unmarshal([]byte(fileread.Definition), &definition); err != nil {
		t.Fatal(err)
	}
	parameters, err := schema.Compile(definition.Parameters)
	if err != nil {
		t.Fatal(err)
	}
	returns, err := schema.Compile(definition.Returns)
	if err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	write(t, base, "secret", "what lies outside")
	dir := filepath.Join(base, "work")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "a.txt", "line\n\u2028\"<tag>\"\x00")
	write(t, dir, "latin", "gr\xfc\xdfe")
	write(t, dir, "bad", "\xff")
	if err := os.Symlink("../secret", filepath.Join(dir, "up")); err != nil {
		t.Fatal(err)
	}
	relative := open(t, fileread.Config{Dir: "work", Base: base})
	named := open(t, fileread.Config{Folders: map[string]string{"in": dir, "out": "work"}, Base: base})
	for _, row := range []struct {
		h            *fileread.Handler
		params, want string // a text, or a code
	}{
		{relative, `{"path": "a.txt"}`, "line\n\u2028\"<tag>\"\x00"},
		{relative, `{"path": "latin", "encoding": "latin1"}`, "grüße"},
		{relative, `{"path": "bad", "encoding": "base64"}`, "/w=="},
		{named, `{"path": "in/latin", "encoding": "iso-8859-1"}`, "grüße"},
		{named, `{"path": "out/a.txt", "encoding": "utf8"}`, "line\n\u2028\"<tag>\"\x00"},
		{relative, `{"path": "bad"}`, "unsupported"},
		{relative, `{"path": "a.txt", "encoding": "utf-16"}`, "invalid_arguments"},
		{relative, `{"path": "../secret"}`, "invalid_arguments"},
		{relative, `{"path": "/proc/self/environ"}`, "invalid_arguments"},
		{relative, `{"path": "` + dir + `/a.txt"}`, "invalid_arguments"},
		{relative, `{"path": "up"}`, "permission_denied"},
		{relative, `{"path": "none"}`, "not_found"},
		{named, `{"path": "a.txt"}`, "not_found"},
		{relative, `{"path": 1}`, "invalid_arguments"},
		{relative, `{}`, "invalid_arguments"},
		{relative, `[]`, "invalid_arguments"},
	} {
		got, err := row.h.Execute(t.Context(), json.RawMessage(row.params))
		if err != nil {
			if e := failure.As(err); e == nil || string(e.Code) != row.want || strings.Contains(err.Error(), base) && !strings.Contains(row.params, base) {
				t.Errorf("%s: %v", row.params, err)
			}
			continue
		}
		var text string
		if err := json.Unmarshal(got, &text); err != nil || text != row.want || len(returns.Validate(got)) > 0 || len(parameters.Validate([]byte(row.params))) > 0 {
			t.Errorf("%s: %s, %v", row.params, got, err)
		}
	}
	for _, encoding := range rootfs.Encodings() {
		if v := parameters.Validate([]byte(`{"path": "a", "encoding": "` + encoding + `"}`)); len(v) > 0 {
			t.Errorf("the definition refuses %s: %v", encoding, v)
		}
	}
}

// The definition is one that package action takes.
func TestDefinition(t *testing.T) {
	a, err := action.Parse([]byte(fileread.Definition))
	if err == nil {
		err = action.Check(a)
	}
	if err != nil || !a.Idempotent || a.Returns == nil {
		t.Errorf("%s: %v", a.ID, err)
	}
}

func TestConfigIsRefused(t *testing.T) {
	dir := t.TempDir()
	for want, c := range map[string]fileread.Config{
		"no folder":   {},
		"exclude":     {Dir: dir, Folders: map[string]string{"a": dir}},
		"has no name": {Folders: map[string]string{"": dir}},
		"root of the": {Dir: "/"},
		"no such":     {Dir: "none", Base: dir},
	} {
		if _, err := fileread.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// Both bounds reach the tree.
func TestBounds(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a", "12345")
	if err := os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	var codes []failure.Code
	for _, c := range []fileread.Config{{Dir: dir}, {Dir: dir, HardLinks: true, MaxBytes: 4}, {Dir: dir, HardLinks: true}} {
		_, err := open(t, c).Execute(t.Context(), json.RawMessage(`{"path": "a"}`))
		if err == nil {
			codes = append(codes, "")
			continue
		}
		codes = append(codes, failure.As(err).Code)
	}
	if !slices.Equal(codes, []failure.Code{failure.NotAllowed, failure.TooLarge, ""}) {
		t.Error(codes)
	}
}
