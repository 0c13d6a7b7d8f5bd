package fleet_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agentd/agentd/fleet"
)

// envFleet is a fleet of one agent with a .env file.
func envFleet(text string) files {
	return files{
		"fleet.yaml":   "version: 1\nname: f\nagents: [{id: a, path: a}]\nenvironments:\n  default:\n    envFiles: [./first.env, ./.env]\n",
		"a/agent.yaml": "name: a\n",
		".env":         text,
	}
}

func TestEnvFile(t *testing.T) {
	const text = "\ufeff# a comment\n\nPLAIN=a b \nexport EXPORTED=x # not this\n\tTABBED = y\r\nHASH=a#b\nEMPTY=\nEQUALS=a=b=\n" +
		"SINGLE='a \"b\" $c \\n #'\nDOUBLE=\"a\\tb \\\"c\\\" \\$d \\\\ \\q\" # quoted\nKEY='-----BEGIN-----\nabc\n-----END-----'\nDOLLAR=pa$$word${x}\nexportED=1\nPLAIN=later\nLAST=\"end\""
	f := envFleet(text).with(files{"first.env": "PLAIN=first\n"}).load(t)
	m, _ := f.Member("a")
	got, err := f.EnvFileVariables(m)
	if err != nil {
		t.Fatal(err)
	}
	if want := []fleet.Variable{
		{"PLAIN", "first"}, {"PLAIN", "a b"}, {"EXPORTED", "x"}, {"TABBED", "y"}, {"HASH", "a#b"}, {"EMPTY", ""}, {"EQUALS", "a=b="},
		{"SINGLE", `a "b" $c \n #`}, {"DOUBLE", "a\tb \"c\" $d \\ \\q"}, {"KEY", "-----BEGIN-----\nabc\n-----END-----"},
		{"DOLLAR", "pa$$word${x}"}, {"exportED", "1"}, {"PLAIN", "later"}, {"LAST", "end"},
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// Every fault has its line, and none shows a value: it may be a secret.
func TestBadEnvFile(t *testing.T) {
	for text, want := range map[string]string{
		"A=1\n\nhunter2\n":                   ".env:3:1: expected NAME=value",
		"A-B=hunter2\n":                      ".env:1:1: this is not the name of an environment variable",
		"1A=hunter2\n":                       ".env:1:1: this is not the name",
		"=hunter2\n":                         ".env:1:1: this is not the name",
		"A='1\n2\n'\nB='hunter2\nB=3":        ".env:4:1: the quotes of the value are not closed",
		"A=\"1\"hunter2\nB":                  ".env:1:1: there is text behind the closing quote",
		"A=\"hunter2\x00\"":                  ".env:1:1: the value holds a NUL byte",
		"A=hunter2\x00\n":                    ".env:1:1: the value holds a NUL byte",
		"A=" + strings.Repeat("h", 1<<20):    ".env:1:1: the file is larger than 1048576 bytes",
		"A='\n\n' hunter2\nA B=1\nexport=1x": ".env:3:1: there is text behind the closing quote",
	} {
		f := envFleet(text).load(t)
		m, _ := f.Member("a")
		variables, err := f.EnvFileVariables(m)
		var faulty *fleet.LoadError
		if !errors.As(err, &faulty) || !strings.HasPrefix(err.Error(), want) || variables != nil {
			t.Errorf("%.60q: %v, want %s", text, err, want)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%.60q: the fault shows a value: %v", text, err)
		}
		if findings := f.Lint(); !findings.Failed() || findings[0].Code != fleet.ConfigInvalid || findings[0].Position.File != ".env" {
			t.Errorf("%.60q: findings %+v", text, findings)
		}
	}
}

// A missing .env file holds nothing; one that cannot be read is an error of the
// agent that needs it, and none of a validation.
func TestUnreadableEnvFile(t *testing.T) {
	f := envFleet("").with(files{".env": ""}).load(t)
	m, _ := f.Member("a")
	if variables, err := f.EnvFileVariables(m); err != nil || variables != nil {
		t.Errorf("%q, %v", variables, err)
	}
	if err := os.Mkdir(".env", 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := f.EnvFileVariables(m); err == nil || !strings.Contains(err.Error(), ".env") {
		t.Errorf("a folder is read: %v", err)
	}
	if findings := f.Lint(); len(findings) != 0 {
		t.Errorf("%+v", findings)
	}
}

// Files that environments name for other programs are told when they are missing,
// with the place that names them: once in a validation, and for each agent that is in
// such an environment.
func TestMissingFiles(t *testing.T) {
	f := files{
		"fleet.yaml": `version: 1
name: f
agents: [{id: a, path: a, env: child}, {id: b, path: b, env: base}, {id: c, path: b, env: other}]
environments:
  base:
    secretsRef: ./secrets.yaml
    channelsRef: ./channels.yaml
    envFiles: [./base.env]
    overrides: {a: {envFiles: [./never.env]}}
  child:
    inherit: base
    secretsRef: ./there.yaml
    overrides: {a: {envFiles: [./a.env]}, b: {envFiles: [./b.env]}}
  other: {}
`,
		"a/agent.yaml": "name: a\n", "b/agent.yaml": "name: b\n", "there.yaml": "x: 1\n",
	}
	f["fleet.yaml"] = strings.Replace(f["fleet.yaml"], "path: b, env: other", "path: c, env: other", 1)
	f["c/agent.yaml"] = "name: c\n"
	loaded := f.load(t)
	if got, want := text(t, loaded.Lint()), strings.Join([]string{
		"! [ref.missing] fleet.yaml:6:5: /environments/base/secretsRef: secretsRef names ./secrets.yaml, and there is no such file",
		"! [ref.missing] fleet.yaml:7:5: /environments/base/channelsRef: channelsRef names ./channels.yaml, and there is no such file",
		"✓ fleet validates; warnings: 2.\n",
	}, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for id, want := range map[string]string{"a": "channels.yaml a.env", "b": "channels.yaml secrets.yaml base.env", "c": ""} {
		m, _ := loaded.Member(id)
		var got []string
		for _, finding := range m.MissingFiles() {
			got = append(got, finding.Message)
			if finding.Position.Line == 0 || finding.Severity != fleet.SeverityWarning {
				t.Errorf("%s: %+v", id, finding)
			}
		}
		all := strings.Join(got, "\n")
		names := strings.Fields(want)
		if len(got) != len(names) {
			t.Errorf("%s:\n%s", id, all)
		}
		for _, name := range names {
			if !strings.Contains(all, "./"+name+",") {
				t.Errorf("%s: %s is not told of in\n%s", id, name, all)
			}
		}
	}
}

// Whatever a .env file holds, its variables can be those of a process.
func FuzzEnvFile(f *testing.F) {
	for _, seed := range []string{"A=1\n", "export A='x\ny' # c\n", "A=\"\\n\\\"\"", "A", "=", "A=\x00", "\"", "A=\"\\"} {
		f.Add(seed)
	}
	dir := f.TempDir()
	for name, text := range envFleet("") {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			f.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			f.Fatal(err)
		}
	}
	loaded, err := fleet.Load(dir, fleet.LoadOptions{})
	if err != nil {
		f.Fatal(err)
	}
	m, _ := loaded.Member("a")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(filepath.Join(dir, ".env"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		variables, err := loaded.EnvFileVariables(m)
		var faulty *fleet.LoadError
		if err != nil && !errors.As(err, &faulty) {
			t.Fatal(err)
		}
		for _, v := range variables {
			if strings.ContainsAny(v.Name, "=\x00 \n") || v.Name == "" || strings.ContainsRune(v.Value, 0) {
				t.Errorf("%q: %q", text, v)
			}
			if utf8.ValidString(text) && !utf8.ValidString(v.Value) {
				t.Errorf("%q: %q is cut within a character", text, v.Value)
			}
		}
	})
}
