package nats_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
)

// env is an environment of a test's own.
type env map[string]string

func (e env) get(name string) string { return e[name] }

func file(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// reaches fails unless opts give a connection that carries messages.
func reaches(t *testing.T, opts nats.Options) {
	t.Helper()
	c := connect(t, opts)
	got := make(chan struct{}, 1)
	if _, err := c.Subscribe("t", "", func(transport.Message) { got <- struct{}{} }); err != nil {
		t.Fatal(err)
	}
	if err := c.Publish(t.Context(), transport.Message{Topic: "t"}); err != nil {
		t.Fatal(err)
	}
	wait(t, got)
}

func TestPassword(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, `authorization { user: alice, password: "p@ss/word" }`)
	environment := env{"ALICE": "alice", "PASSWORD": "p@ss/word", "WRONG": "no", "SERVERS": "nats://alice:p%40ss%2Fword@" + server.Addr()}
	plain := []string{server.URL()}
	for name, opts := range map[string]nats.Options{
		"variable":          {Servers: plain, User: "alice", Password: "env:PASSWORD"},
		"both referenced":   {Servers: plain, User: "env:ALICE", Password: "env:PASSWORD"},
		"file":              {Servers: plain, User: "alice", Password: "file:" + file(t, "p", "p@ss/word\n")},
		"in the URL":        {Servers: []string{"nats://alice:${env:PASSWORD}@" + server.Addr()}},
		"all in the URL":    {Servers: []string{"nats://${env:ALICE}:${env:PASSWORD}@" + server.Addr()}},
		"URL by reference":  {Servers: []string{"env:SERVERS"}},
		"URL as whole text": {Servers: []string{"${env:SERVERS}"}},
	} {
		t.Run(name, func(t *testing.T) {
			opts.Getenv = environment.get
			reaches(t, opts)
		})
	}
	_, err := nats.Connect(t.Context(), nats.Options{Servers: plain, User: "alice", Password: "env:WRONG", Getenv: environment.get})
	wantCode(t, err, transport.Denied)
}

func TestToken(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, `authorization { token: "t0ken" }`)
	environment := env{"T": "t0ken"}
	reaches(t, nats.Options{Servers: []string{server.URL()}, Token: "env:T", Getenv: environment.get})
	reaches(t, nats.Options{Servers: []string{"nats://${env:T}@" + server.Addr()}, Getenv: environment.get})
}

func TestNKey(t *testing.T) {
	t.Parallel()
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := user.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	server := natstest.Run(t, "authorization { users: [ { nkey: "+public+" } ] }")
	reaches(t, nats.Options{Servers: []string{server.URL()}, NKeySeedFile: file(t, "seed", string(seed))})
	reaches(t, nats.Options{
		Servers: []string{server.URL()}, NKeySeedFile: "~/seed",
		Getenv: env{"HOME": filepath.Dir(file(t, "seed", string(seed)))}.get,
	})
	_, err = nats.Connect(t.Context(), nats.Options{Servers: []string{server.URL()}, NKeySeedFile: file(t, "seed", "no seed")})
	if err == nil || !strings.Contains(err.Error(), "nkey seed file") {
		t.Errorf("a bad seed file: %v", err)
	}
}

// Every wrong option is named, and no error shows a secret.
func TestBadOptions(t *testing.T) {
	t.Parallel()
	exists := file(t, "exists", "x")
	for name, test := range map[string]struct {
		opts nats.Options
		want []string
	}{
		"literal password":        {nats.Options{User: "u", Password: "hunter2"}, []string{"Password", "not a reference to a secret", "env:NAME"}},
		"literal token":           {nats.Options{Token: "hunter2"}, []string{"Token", "not a reference to a secret"}},
		"password in URL":         {nats.Options{Servers: []string{"nats://u:hunter2@h:4222"}}, []string{"Servers", "h:4222", "not a reference to a secret"}},
		"token in URL":            {nats.Options{Servers: []string{"nats://hunter2@h"}}, []string{"Servers", "not a reference to a secret"}},
		"password after user":     {nats.Options{Servers: []string{"nats://${env:U}:hunter2@h"}}, []string{"Servers", "not a reference to a secret"}},
		"half a reference in URL": {nats.Options{Servers: []string{"nats://u:hunter2${env:U}@h"}}, []string{"Servers", "not a reference to a secret"}},
		"unset variable":          {nats.Options{User: "u", Password: "env:ABSENT"}, []string{"Password", "ABSENT is not set"}},
		"unset variable in URL":   {nats.Options{Servers: []string{"nats://u:${env:ABSENT}@h"}}, []string{"Servers", "ABSENT is not set"}},
		"unset servers":           {nats.Options{Servers: []string{"env:ABSENT"}}, []string{"Servers", "ABSENT is not set"}},
		"two ways":                {nats.Options{User: "u", NKeySeedFile: exists}, []string{"User and NKeySeedFile are set"}},
		"password alone":          {nats.Options{Password: "env:U"}, []string{"User", "a password needs a user"}},
		"half a certificate":      {nats.Options{CertFile: exists}, []string{"CertFile", "its key's"}},
		"missing files":           {nats.Options{CAFile: "/no/ca", CredsFile: "/no/creds"}, []string{"CAFile", "/no/ca", "CredsFile", "/no/creds"}},
		"foreign scheme":          {nats.Options{Servers: []string{"kafka://h"}}, []string{"Servers", "nats, tls, ws or wss"}},
		"no host":                 {nats.Options{Servers: []string{"nats://"}}, []string{"Servers", "is not the URL"}},
		"no context":              {nats.Options{Context: "absent"}, []string{"Context", "absent"}},
		"odd context":             {nats.Options{Context: "../x"}, []string{"Context", "not the name"}},
	} {
		t.Run(name, func(t *testing.T) {
			test.opts.Getenv = env{"U": "hunter2", "XDG_CONFIG_HOME": t.TempDir()}.get
			_, err := nats.Connect(t.Context(), test.opts)
			wantCode(t, err, transport.Failed)
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q in it", err, want)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows the secret: %v", err)
			}
		})
	}
}

func TestFromEnv(t *testing.T) {
	server := natstest.Run(t, `authorization { user: alice, password: secret }`)
	seed := file(t, "password", "secret")
	for name, environment := range map[string]env{
		"password":           {nats.EnvURL: server.URL(), nats.EnvUser: "alice", nats.EnvPassword: "secret"},
		"password by file":   {nats.EnvURL: server.URL(), nats.EnvUser: "alice", nats.EnvPassword: "file:" + seed},
		"all in the URL":     {nats.EnvURL: "nats://alice:secret@" + server.Addr()},
		"several servers":    {nats.EnvURL: "nats://127.0.0.1:1, " + server.URL(), nats.EnvUser: "alice", nats.EnvPassword: "secret"},
		"variable elsewhere": {nats.EnvURL: server.URL(), nats.EnvUser: "alice", nats.EnvPassword: "env:OTHER", "OTHER": "secret"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := nats.FromEnv(environment.get)
			reaches(t, opts.WithServers([]string{"nats://127.0.0.1:1"}))
		})
	}
	opts := nats.FromEnv(env{nats.EnvUser: "alice", nats.EnvPassword: "secret"}.get)
	if len(opts.Servers) != 0 {
		t.Errorf("servers %v without a variable for them", opts.Servers)
	}
	reaches(t, opts.WithServers([]string{server.URL()}))
}

// cliContext writes a file of the nats command line tool's.
func cliContext(t *testing.T, name, content, selected string) env {
	t.Helper()
	home := t.TempDir()
	dir := filepath.Join(home, ".config", "nats")
	if err := os.MkdirAll(filepath.Join(dir, "context"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "context", name+".json"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if selected != "" {
		if err := os.WriteFile(filepath.Join(dir, "context.txt"), []byte(selected+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return env{"HOME": home}
}

func TestContexts(t *testing.T) {
	t.Parallel()
	server := natstest.Run(t, `authorization { user: alice, password: secret }`)
	content := `{"description":"d","url":"nats://127.0.0.1:1,` + server.URL() + `","user":"alice","password":"secret","inbox_prefix":"_MINE"}`
	environment := cliContext(t, "dev", content, "dev")
	reaches(t, nats.Options{Context: "dev", Getenv: environment.get})
	reaches(t, nats.Options{Context: nats.SelectedContext, Getenv: environment.get})

	c := connect(t, nats.Options{Context: "dev", Getenv: environment.get})
	inbox, err := c.OpenInbox(func(transport.Message) {})
	if err != nil {
		t.Fatal(err)
	}
	if topic := inbox.Topic("x"); !strings.HasPrefix(topic, "_MINE.") {
		t.Errorf("inbox %s, want it below the context's prefix", topic)
	}

	// What options say comes first, and an authentication is taken as a whole.
	environment["WRONG"] = "wrong"
	_, err = nats.Connect(t.Context(), nats.Options{Servers: []string{server.URL()}, Context: "dev", User: "bob", Password: "env:WRONG", Getenv: environment.get})
	wantCode(t, err, transport.Denied)
}

func TestBadContexts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ content, context, want string }{
		"unsupported":  {`{"nsc":"nsc://o/a/u"}`, "dev", "uses nsc"},
		"not JSON":     {`{`, "dev", "dev.json"},
		"none chosen":  {`{}`, nats.SelectedContext, "nats context select"},
		"bad server":   {`{"url":"http://h"}`, "dev", "nats, tls, ws or wss"},
		"unset secret": {`{"user":"u","password":"env:ABSENT"}`, "dev", "ABSENT is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			environment := cliContext(t, "dev", test.content, "")
			_, err := nats.Connect(t.Context(), nats.Options{Context: test.context, Getenv: environment.get})
			wantCode(t, err, transport.Failed)
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q in it", err, test.want)
			}
		})
	}
}
