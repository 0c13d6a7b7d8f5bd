package approvals

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/term"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/cli"
)

// maxKeyBytes is more than the longest private key takes.
const maxKeyBytes = 64 << 10

// A signingKey is a key that is ready to sign.
type signingKey struct {
	signer ssh.Signer
	name   string // who it belongs to, and where it is
	close  func()
}

// openKeys finds the key that signs: the one in file, or else one that the agent takes, of
// the ssh-agent or in ~/.ssh. A file with a public key means its private half in the
// ssh-agent.
func openKeys(ctx context.Context, env *cli.Env, file string, wanted []control.Signer) (*signingKey, error) {
	if file != "" {
		return keyInFile(ctx, env, file, wanted)
	}
	if key, err := keyOfAgent(ctx, env, wanted); key != nil || err != nil {
		return key, err
	}
	for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} { // ssh-keygen's names
		path := filepath.Join(env.Getenv("HOME"), ".ssh", name)
		public, err := cli.ReadFile(path+".pub", maxKeyBytes)
		if err != nil {
			continue
		}
		// By the public half, so that nobody is asked for the passphrase of another key.
		key, _, _, _, err := ssh.ParseAuthorizedKey(public)
		if err == nil && owner(wanted, key) != "" {
			return keyInFile(ctx, env, path, wanted)
		}
	}
	names := make([]string, len(wanted))
	for i, w := range wanted {
		names[i] = w.Name + " " + w.Key
	}
	return nil, fmt.Errorf("neither the ssh-agent nor ~/.ssh has a key of an approver (%s): name its file with --key, or sign elsewhere and use --signature", strings.Join(names, ", "))
}

// owner returns whose key it is, or "".
func owner(wanted []control.Signer, key ssh.PublicKey) string {
	fingerprint := ssh.FingerprintSHA256(key)
	i := slices.IndexFunc(wanted, func(w control.Signer) bool { return w.Key == fingerprint })
	if i < 0 {
		return ""
	}
	return wanted[i].Name
}

// keyInFile reads a private key, or finds the one of a public key in the ssh-agent.
func keyInFile(ctx context.Context, env *cli.Env, file string, wanted []control.Signer) (*signingKey, error) {
	text, err := cli.ReadFile(file, maxKeyBytes)
	if err != nil {
		return nil, fmt.Errorf("--key: %w", err)
	}
	if public, _, _, _, err := ssh.ParseAuthorizedKey(text); err == nil {
		key, err := keyOfAgent(ctx, env, []control.Signer{{Name: file, Key: ssh.FingerprintSHA256(public)}})
		if key == nil && err == nil {
			err = fmt.Errorf("the ssh-agent does not have the private half of %s", file)
		}
		return key, err
	}
	signer, err := ssh.ParsePrivateKey(text)
	if _, locked := errors.AsType[*ssh.PassphraseMissingError](err); locked {
		passphrase, perr := askPassphrase(env, file)
		if perr != nil {
			return nil, perr
		}
		signer, err = ssh.ParsePrivateKeyWithPassphrase(text, passphrase)
	}
	if err != nil {
		return nil, fmt.Errorf("the key %s: %w", file, err)
	}
	return &signingKey{signer: signer, name: named(owner(wanted, signer.PublicKey()), file), close: func() {}}, nil
}

func named(owner, where string) string {
	if owner == "" {
		return "a key that is no approver's (" + where + ")"
	}
	return owner + " (" + where + ")"
}

// keyOfAgent returns the first key of the ssh-agent that is wanted, or nil.
func keyOfAgent(ctx context.Context, env *cli.Env, wanted []control.Signer) (*signingKey, error) {
	socket := env.Getenv("SSH_AUTH_SOCK")
	if socket == "" {
		return nil, nil
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		fmt.Fprintf(env.Stderr, "the ssh-agent does not answer: %v\n", err)
		return nil, nil
	}
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the ssh-agent: %w", err), conn.Close())
	}
	for _, s := range signers {
		if who := owner(wanted, s.PublicKey()); who != "" {
			return &signingKey{signer: s, name: named(who, "ssh-agent"), close: func() { _ = conn.Close() }}, nil
		}
	}
	return nil, conn.Close()
}

// askPassphrase reads a passphrase from the terminal, without an echo.
func askPassphrase(env *cli.Env, file string) ([]byte, error) {
	terminal, ok := env.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(terminal.Fd())) {
		return nil, fmt.Errorf("the key %s has a passphrase, and standard input is no terminal to ask on: add the key to an ssh-agent", file)
	}
	fmt.Fprintf(env.Stderr, "Passphrase of %s: ", file)
	passphrase, err := term.ReadPassword(int(terminal.Fd()))
	fmt.Fprintln(env.Stderr)
	if err != nil {
		return nil, fmt.Errorf("reading the passphrase: %w", err)
	}
	return passphrase, nil
}
