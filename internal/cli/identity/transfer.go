package identity

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/identity/sealed"
	"github.com/agentd/agentd/internal/cli"
)

// An ExportRequest is one `agentd identity export`.
type ExportRequest struct {
	Agent   string
	KeyFile string // see [Selection]
	// Recipients are age1… or SSH public keys, or paths of files with such. RecipientFiles
	// are such paths.
	Recipients, RecipientFiles []string
	// ByPassphrase seals to a passphrase instead.
	ByPassphrase bool
	Passphrase   Passphrase
	// Out is the file to write; "" is standard output.
	Out string
}

// maxTransferFile bounds the files that the two commands read.
const maxTransferFile = 1 << 20

// Export seals the keys of an agent for another replica of it.
func Export(env *cli.Env, r ExportRequest) error {
	if r.Agent == "" {
		return cli.Usage("--agent is required: whose keys are they?")
	}
	_, stores, err := findStores(env, Selection{Agents: []string{r.Agent}, KeyFile: r.KeyFile})
	if err != nil {
		return err
	}
	s := stores[0]
	own, err := s.Keys()
	if err != nil {
		return err
	}
	if len(own) == 0 {
		return fmt.Errorf("%s has no key here: %s does not exist (agentd identity publish makes one)", s.member.Address, s.Path)
	}
	to, err := r.recipients()
	if err != nil {
		return err
	}
	data, err := sealed.Seal(sealed.Keys{Agent: s.member.Address, Own: own}, to...)
	if err != nil {
		return err
	}
	if r.Out == "" {
		_, err = env.Stdout.Write(data)
		return err
	}
	return writeAside(r.Out, data)
}

// recipients returns to whom the keys are sealed.
func (r ExportRequest) recipients() ([]age.Recipient, error) {
	named := len(r.Recipients)+len(r.RecipientFiles) > 0
	byPassphrase := r.ByPassphrase || r.Passphrase.File != ""
	switch {
	case named && byPassphrase:
		return nil, cli.Usage("--passphrase and recipients exclude each other: export twice")
	case byPassphrase:
		secret, err := r.Passphrase.read("Passphrase to seal the keys with", true)
		if err != nil {
			return nil, err
		}
		to, err := age.NewScryptRecipient(string(secret))
		return []age.Recipient{to}, err
	case !named:
		return nil, cli.Usage("--recipient, --recipients-file or --passphrase is required: who may open the keys?")
	}
	var all []age.Recipient
	for _, text := range r.Recipients {
		// A file of that name comes first: a recipient is none.
		if _, err := os.Stat(text); err == nil {
			r.RecipientFiles = append(r.RecipientFiles, text)
			continue
		}
		to, err := sealed.ParseRecipients(text)
		if err != nil {
			return nil, cli.Usage("--recipient: there is no such file, and it is %v", err)
		}
		all = append(all, to...)
	}
	for _, path := range r.RecipientFiles {
		text, err := cli.ReadFile(path, maxTransferFile)
		if err != nil {
			return nil, err
		}
		to, err := sealed.ParseRecipients(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, to...)
	}
	return all, nil
}

// writeAside writes a file that its owner alone can read, as a whole or not at all.
func writeAside(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".agentd-export-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// An ImportRequest is one `agentd identity import`.
type ImportRequest struct {
	// File is the sealed file; "-" is standard input.
	File string
	// Agent is whose keys it must have; "" takes those of any member.
	Agent   string
	KeyFile string // see [Selection]
	// Identities are files of age identities or SSH private keys. Without any, the file is
	// sealed to a passphrase.
	Identities []string
	Passphrase Passphrase
	// Unpublished takes keys that identities.yaml does not have.
	Unpublished bool
	// Force replaces keys that the file does not have.
	Force bool
}

// Import opens sealed keys, and makes them the keys of their agent on this machine. A
// running agent notices by itself.
func Import(env *cli.Env, r ImportRequest) error {
	if r.Agent != "" {
		if _, _, err := findStores(env, Selection{Agents: []string{r.Agent}}); err != nil {
			return err // before anybody types a passphrase
		}
	}
	keys, err := r.open(env)
	if err != nil {
		return err
	}
	if r.Agent != "" && cli.ID(r.Agent) != keys.Agent.ID() {
		return fmt.Errorf("%s holds the keys of %s", r.File, keys.Agent)
	}
	f, stores, err := findStores(env, Selection{Agents: []string{keys.Agent.ID()}, KeyFile: r.KeyFile})
	if err != nil {
		return fmt.Errorf("%s holds the keys of %s, and the fleet has no such agent", r.File, keys.Agent)
	}
	s, now := stores[0], time.Now()
	if err := s.checkPublished(f, keys.Own, now); err != nil && !r.Unpublished {
		return err
	}
	if err := s.Replace(keys.Own, now, r.Force); err != nil {
		if _, lost := errors.AsType[*identity.OtherKeysError](err); lost {
			return fmt.Errorf("%w\n(export them first if they are needed; --force replaces them)", err)
		}
		return err
	}
	return write(env, s.describe(f, keys.Own, now))
}

// open reads and decrypts the file.
func (r ImportRequest) open(env *cli.Env) (keys sealed.Keys, err error) {
	var data []byte
	if r.File == "-" {
		data, err = io.ReadAll(io.LimitReader(env.Stdin, maxTransferFile+1)) // sealed.Open refuses more
	} else {
		data, err = cli.ReadFile(r.File, maxTransferFile)
	}
	if err != nil {
		return keys, err
	}
	with, err := r.identities()
	if err != nil {
		return keys, err
	}
	if keys, err = sealed.Open(data, with...); err != nil {
		err = fmt.Errorf("%s: %w", r.File, err)
		if errors.Is(err, sealed.ErrNotRecipient) && r.Identities == nil {
			err = fmt.Errorf("%w\n(--identity names an SSH private key, or a file of age identities)", err)
		}
	}
	return keys, err
}

// identities returns what opens the file.
func (r ImportRequest) identities() ([]age.Identity, error) {
	if r.Identities == nil {
		secret, err := r.Passphrase.read("Passphrase that the keys are sealed with", false)
		if err != nil {
			return nil, err
		}
		with, err := age.NewScryptIdentity(string(secret))
		return []age.Identity{with}, err
	}
	var all []age.Identity
	for _, path := range r.Identities {
		data, err := cli.ReadFile(path, maxTransferFile)
		if err != nil {
			return nil, err
		}
		with, err := sealed.ParseIdentities(data, func() ([]byte, error) { return r.Passphrase.read("Passphrase of "+path, false) })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, with...)
	}
	return all, nil
}

// checkPublished refuses keys that the fleet does not know, unless they have expired.
// Anybody can seal a file; only who has the published key can seal that one.
func (s store) checkPublished(f *fleet.Fleet, own []identity.OwnKey, now time.Time) error {
	var unknown []string
	valid := false
	for _, k := range s.describe(f, own, now) {
		valid = valid || k.State != stateExpired
		if k.State != stateExpired && !k.Published {
			unknown = append(unknown, k.PublicKey)
		}
	}
	switch {
	case !valid:
		return fmt.Errorf("every key of %s in the file has expired, or there is none; --allow-unpublished takes it all the same", s.member.Address)
	case unknown != nil:
		return fmt.Errorf("%s does not list these keys for %s: %s\n(publish them where they were made, and bring the file here; --allow-unpublished takes them without that proof)",
			fleet.IdentitiesName, s.member.Address, strings.Join(unknown, ", "))
	}
	return nil
}
