package nats

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentd/agentd/internal/secretref"
)

// SelectedContext stands for the context that the user chose with `nats context select`.
const SelectedContext = "selected"

// A natsContext is a file of the nats command line tool,
// <config folder>/nats/context/<name>.json. It is the user's own secret store, so it
// may contain passwords in plain text.
type natsContext struct {
	URL         string `json:"url"`
	User        string `json:"user"`
	Password    string `json:"password"`
	Token       string `json:"token"`
	Creds       string `json:"creds"`
	NKey        string `json:"nkey"`
	CA          string `json:"ca"`
	Cert        string `json:"cert"`
	Key         string `json:"key"`
	InboxPrefix string `json:"inbox_prefix"`
	TLSFirst    bool   `json:"tls_first"`

	// These would change who connects, or where to, and are not supported. To ignore
	// them would connect as somebody else, so they are errors.
	NSC        string `json:"nsc"`
	UserJWT    string `json:"user_jwt"`
	UserSeed   string `json:"user_seed"`
	SOCKSProxy string `json:"socks_proxy"`
}

// addContext fills in what r leaves open. Credentials are taken as a whole or not at
// all: a user of the options with the password of the context would be nobody.
func (r *resolved) addContext() error {
	c, err := loadContext(r.Context, r.Getenv)
	if err != nil {
		return err
	}
	authenticated := r.User != "" || r.Token != "" || r.CredsFile != "" || r.NKeySeedFile != ""
	if !authenticated {
		r.User, r.CredsFile, r.NKeySeedFile = c.User, c.Creds, c.NKey
		if r.Password, err = contextSecret(c.Password, r.Getenv); err != nil {
			return err
		}
		if r.Token, err = contextSecret(c.Token, r.Getenv); err != nil {
			return err
		}
	}
	if len(r.Servers) == 0 && c.URL != "" {
		for _, u := range strings.Split(c.URL, ",") {
			u = strings.TrimSpace(u)
			if err := checkServer(u); err != nil {
				return err
			}
			r.Servers = append(r.Servers, u)
		}
	}
	setDefault(&r.CAFile, c.CA)
	if r.CertFile == "" && r.KeyFile == "" {
		r.CertFile, r.KeyFile = c.Cert, c.Key
	}
	setDefault(&r.InboxPrefix, c.InboxPrefix)
	r.TLSFirst = r.TLSFirst || c.TLSFirst
	return nil
}

// SecretFiles returns the paths of the files that hold what nobody else may read: those of
// credentials and keys, those of references, and those of the context.
func (o Options) SecretFiles() []string {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	files := []string{o.CredsFile, o.NKeySeedFile, o.KeyFile}
	texts := append([]string{o.User, o.Password, o.Token}, o.Servers...)
	if o.Context != "" {
		if dir, err := contextDir(o.Getenv); err == nil {
			files = append(files, filepath.Join(dir, "context"))
		}
		// One that cannot be read now is an error of Connect.
		if c, err := loadContext(o.Context, o.Getenv); err == nil {
			files = append(files, c.Creds, c.NKey, c.Key)
			texts = append(texts, c.Password, c.Token)
		}
	}
	for _, text := range texts {
		files = append(files, secretref.Files(text)...)
	}
	files = slices.DeleteFunc(files, func(file string) bool { return file == "" })
	for i := range files {
		files[i] = expandHome(files[i], o.Getenv)
	}
	return files
}

// contextSecret returns a secret of a context, which may be a reference or the
// secret itself.
func contextSecret(s string, getenv func(string) string) (string, error) {
	if !secretref.Is(s) {
		return s, nil
	}
	return secretref.Resolve(s, getenv)
}

// loadContext reads a context by its name, which must not lead out of the folder.
func loadContext(name string, getenv func(string) string) (*natsContext, error) {
	dir, err := contextDir(getenv)
	if err != nil {
		return nil, err
	}
	if name == SelectedContext {
		data, err := os.ReadFile(filepath.Join(dir, "context.txt"))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errors.New("no context is selected: choose one with `nats context select`, or name one")
		}
		if err != nil {
			return nil, err
		}
		name = strings.TrimSpace(string(data))
	}
	if name == "" || name != filepath.Base(name) || name == ".." || name == "." {
		return nil, fmt.Errorf("%q is not the name of a context", name)
	}
	path := filepath.Join(dir, "context", name+".json")
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("context %s: %w", name, err)
	}
	var c natsContext
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("context %s: %w", path, err)
	}
	for field, value := range map[string]string{"nsc": c.NSC, "user_jwt": c.UserJWT, "user_seed": c.UserSeed, "socks_proxy": c.SOCKSProxy} {
		if value != "" {
			return nil, fmt.Errorf("context %s uses %s, which agentd does not support: use creds, nkey, token or user", path, field)
		}
	}
	return &c, nil
}

// contextDir is the configuration folder of the nats tool, by the XDG base directory
// specification.
func contextDir(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "nats"), nil
	}
	home := getenv("HOME")
	if home == "" {
		return "", errors.New("neither XDG_CONFIG_HOME nor HOME is set: where are the contexts?")
	}
	return filepath.Join(home, ".config", "nats"), nil
}
