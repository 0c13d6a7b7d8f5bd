package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"os"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh"
)

// sshKey makes a key pair of OpenSSH, as ssh-keygen does: sshkey <file> [<passphrase>].
// The public key gets .pub.
func sshKey(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: sshkey <file> [<passphrase>]")
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	ts.Check(err)
	signer, err := ssh.NewSignerFromKey(private)
	ts.Check(err)
	block, err := ssh.MarshalPrivateKey(private, "somebody")
	if len(args) == 2 {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "somebody", []byte(args[1]))
	}
	ts.Check(err)
	file := ts.MkAbs(args[0])
	ts.Check(os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	ts.Check(os.WriteFile(file+".pub", ssh.MarshalAuthorizedKey(signer.PublicKey()), 0o600))
}
