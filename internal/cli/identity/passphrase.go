package identity

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/term"

	"github.com/agentd/agentd/internal/cli"
)

// A Passphrase is where a passphrase comes from: the first line of File, or the terminal.
type Passphrase struct {
	// File is a path, such as /dev/fd/3 for an open file descriptor. "" asks.
	File string
	// Ask asks a person, with a prompt. Nil asks at the terminal of the process.
	Ask func(prompt string) ([]byte, error)
}

// maxPassphrase is the longest passphrase.
const maxPassphrase = 4 << 10

// read returns the passphrase. With again a person must repeat it.
func (p Passphrase) read(prompt string, again bool) ([]byte, error) {
	var secret []byte
	var err error
	if p.File != "" {
		if secret, err = cli.ReadFile(p.File, maxPassphrase); err == nil {
			secret, _, _ = bytes.Cut(secret, []byte("\n"))
			secret = bytes.TrimSuffix(secret, []byte("\r"))
		}
	} else {
		secret, err = p.ask(prompt, again)
	}
	if err == nil && len(secret) == 0 {
		err = errors.New("the passphrase is empty")
	}
	return secret, err
}

func (p Passphrase) ask(prompt string, again bool) ([]byte, error) {
	ask := p.Ask
	if ask == nil {
		ask = askTerminal
	}
	first, err := ask(prompt + ": ")
	if err != nil || !again {
		return first, err
	}
	second, err := ask(prompt + ", again: ")
	if err == nil && !bytes.Equal(first, second) {
		err = errors.New("the two passphrases differ")
	}
	return first, err
}

// askTerminal asks at the terminal that controls the process: standard input may be the
// file that the passphrase opens.
func askTerminal(prompt string) (secret []byte, err error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, cli.Usage("there is no terminal to ask for the passphrase: use --passphrase-file")
	}
	defer func() { err = errors.Join(err, tty.Close()) }()
	if _, err := fmt.Fprint(tty, prompt); err != nil {
		return nil, err
	}
	secret, err = term.ReadPassword(int(tty.Fd()))
	if err != nil {
		return nil, fmt.Errorf("passphrase: %w", err)
	}
	_, err = fmt.Fprintln(tty)
	return secret, err
}
