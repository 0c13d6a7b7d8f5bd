package builtin_test

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/action"
	"github.com/agentd/agentd/action/builtin"
	"github.com/agentd/agentd/schema"
)

// What the functions of this package take for granted of its own texts.
func TestDefinitions(t *testing.T) {
	known := builtin.Known()
	for i, d := range builtin.All() {
		if err := action.Check(d.Action); err != nil {
			t.Errorf("%q: %v", d.Action.ID, err)
		}
		for _, remark := range d.Action.Advice() {
			if !strings.Contains(remark, "rate limit") { // of the guide's six examples four have none
				t.Errorf("%s: %s", d.Action.ID, remark)
			}
		}
		if _, err := schema.Compile(d.Config); err != nil {
			t.Errorf("%s: the schema of its configuration: %v", d.Action.ID, err)
		}
		k := known[i]
		if k.Capability.Name != d.Action.ID || k.Config == nil || k.Capability.Input == nil || k.Capability.Output == nil || len(k.Capability.Permissions) != 1 {
			t.Errorf("%s: %+v", d.Action.ID, k)
		}
		if found, ok := builtin.Find(d.Action.ID); !ok || found.Action.Name != d.Action.Name {
			t.Errorf("%s is not found", d.Action.ID)
		}
		// A configuration that does not even fit is an error, and no panic.
		if _, err := builtin.Open(d.Action.ID, `{"other":1}`, builtin.Env{}); err == nil {
			t.Errorf("%s opens with the configuration of something else", d.Action.ID)
		}
	}
	if _, ok := builtin.Find("none"); ok {
		t.Error("an action is found that is not there")
	}
	if _, err := builtin.Open("none", "{}", builtin.Env{}); err == nil {
		t.Error("an action opens that is not there")
	}
}

// Every action runs with what its configuration says, and through the checks of a
// registry.
func TestActionsRun(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"temperature":21.5,"condition":"sun","humidity":0.4}`))
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "notes.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "create table notes(n, text); insert into notes values (1, 'bread'), (2, 'milk')"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	env := builtin.Env{Dir: dir, Secret: func(ref string) (string, error) { return strings.TrimPrefix(ref, "env:"), nil }}
	guarded := `"hosts":["` + host + `"],"allowAddresses":["127.0.0.0/8"]`
	for _, test := range []struct{ id, config, params, want string }{
		{"http-get", `{` + guarded + `}`, `{"url":"` + server.URL + `/data"}`, `"status":200`},
		{"http-get", `{` + guarded + `,"credentials":[{"host":"` + host + `","secret":"env:hunter2"}]}`, `{"url":"` + server.URL + `/data"}`, "permission_denied"}, // by https only
		{"http-get", `{` + guarded + `}`, `{"url":"http://169.254.169.254/"}`, "permission_denied"},
		{"db-query", `{"sqlite":"notes.db"}`, `{"query":"select text from notes where n = ?","params":[2]}`, `"milk"`},
		{"db-query", `{"sqlite":"notes.db"}`, `{"query":"delete from notes"}`, "permission_denied"},
		{"file-read", `{"dir":"."}`, `{"path":"a.txt"}`, `"hello"`},
		{"file-read", `{"dir":"."}`, `{"path":"../a.txt"}`, "invalid_arguments"},
		{"file-read", `{"dir":"."}`, `{"path":"b.txt"}`, "not_found"},
		{"email-send", `{"server":"127.0.0.1:1","tls":"none","from":"desk@example.com"}`, `{"to":"ann@example.com","subject":"s","body":"b"}`, "unavailable"},
		{"email-send", `{"server":"127.0.0.1:1","tls":"none","from":"desk@example.com"}`, `{"to":"ann@example.com\r\nBcc: eve@example.com","subject":"s","body":"b"}`, "invalid_arguments"},
		{"send-notification", `{"webhook":{"url":"` + server.URL + `","allowAddresses":["127.0.0.0/8"]}}`, `{"message":"hello"}`, `"webhook"`},
		{"send-notification", `{"webhook":{"url":"` + server.URL + `","allowAddresses":["127.0.0.0/8"]}}`, `{"message":"hello","channel":"sms"}`, "unsupported"},
		{"get-weather", `{` + guarded + `,"endpoint":"` + server.URL + `/now?q={location}"}`, `{"location":"Paris"}`, `{"temperature":21.5,"condition":"sun","humidity":0.4}`},
	} {
		opened, err := builtin.Open(test.id, test.config, env)
		if err != nil {
			t.Errorf("%s: %v", test.id, err)
			continue
		}
		d, _ := builtin.Find(test.id)
		if faults := mustCompile(t, d.Config).Validate([]byte(test.config)); faults != nil {
			t.Errorf("%s: its own schema refuses the configuration: %v", test.id, faults)
		}
		r := action.New(action.Options{})
		if err := r.Register(opened.Action, opened.Run); err != nil {
			t.Fatal(err)
		}
		out := r.Invoke(t.Context(), action.Invocation{CapabilityID: test.id, Parameters: json.RawMessage(test.params)},
			action.Context{User: action.User{ID: "u", Permissions: opened.Action.Permissions}})
		got := string(out.Result)
		if !out.Success {
			got = string(out.Error.Code)
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%s %s: %s, %v, want %s", test.id, test.params, got, out.Error, test.want)
		}
		if err := opened.Close(); err != nil {
			t.Errorf("%s: %v", test.id, err)
		}
	}
}

// A path that is no JSON pointer would lead to the whole answer, and each call would fail.
func TestWeatherFieldsArePointers(t *testing.T) {
	d, _ := builtin.Find("get-weather")
	config := mustCompile(t, d.Config)
	for field, valid := range map[string]bool{"/current/temp": true, "/0": true, "current.temp": false, "": false} {
		faults := config.Validate([]byte(`{"endpoint":"https://example.com/?q={location}","fields":{"temperature":"` + field + `"}}`))
		if (faults == nil) != valid {
			t.Errorf("%q: %v", field, faults)
		}
	}
}

func mustCompile(t *testing.T, source json.RawMessage) *schema.Schema {
	t.Helper()
	s, err := schema.Compile(source)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
