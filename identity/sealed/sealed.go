package sealed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
)

// Keys are the keys of one agent.
type Keys struct {
	// Agent is whose they are.
	Agent envelope.Address
	// Own are all of them, oldest first, with their windows.
	Own []identity.OwnKey
}

// content is what is sealed.
type content struct {
	Version int              `json:"version"`
	Agent   envelope.Address `json:"agent"`
	Keys    json.RawMessage  `json:"keys"` // a file of keys
}

const contentVersion = 1

// maxBytes is far above the size of a sealed file.
const maxBytes = 1 << 20

// Seal encrypts keys so that each of the recipients can open them.
func Seal(k Keys, to ...age.Recipient) ([]byte, error) {
	keys, err := identity.FormatKeys(k.Own)
	if err != nil {
		return nil, err
	}
	plain, err := json.Marshal(content{Version: contentVersion, Agent: k.Agent, Keys: keys})
	if err != nil {
		return nil, fmt.Errorf("sealed: %w", err)
	}
	var out bytes.Buffer
	armored := armor.NewWriter(&out)
	w, err := age.Encrypt(armored, to...)
	if err != nil {
		return nil, fmt.Errorf("sealed: %w", err)
	}
	_, err = w.Write(plain)
	if err = errors.Join(err, w.Close(), armored.Close()); err != nil {
		return nil, fmt.Errorf("sealed: %w", err)
	}
	return out.Bytes(), nil
}

// ErrNotRecipient is the error for keys that were sealed to somebody else, or to a
// passphrase where an identity is given, or the other way round.
var ErrNotRecipient = errors.New("it is sealed to somebody else: neither the identity nor the passphrase opens it")

// Open decrypts what Seal has encrypted. Each key is one whose halves belong together;
// whether they are the agent's is for the caller to find out.
func Open(data []byte, with ...age.Identity) (Keys, error) {
	if len(data) > maxBytes {
		return Keys{}, fmt.Errorf("sealed: larger than %d bytes", maxBytes)
	}
	var file io.Reader = bytes.NewReader(data)
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte(armor.Header)) { // other programs may leave it out
		file = armor.NewReader(file)
	}
	r, err := age.Decrypt(file, with...)
	if _, foreign := errors.AsType[*age.NoIdentityMatchError](err); foreign {
		return Keys{}, fmt.Errorf("sealed: %w", ErrNotRecipient)
	}
	if err != nil {
		return Keys{}, fmt.Errorf("sealed: %w", err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		return Keys{}, fmt.Errorf("sealed: %w", err)
	}
	var c content
	dec := json.NewDecoder(bytes.NewReader(plain))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return Keys{}, fmt.Errorf("sealed: not the keys of an agent: %w", err)
	}
	if c.Version != contentVersion {
		return Keys{}, fmt.Errorf("sealed: version %d is not supported, only %d", c.Version, contentVersion)
	}
	agent, err := envelope.ParseAddress(string(c.Agent))
	if err != nil {
		return Keys{}, fmt.Errorf("sealed: %w", err)
	}
	own, err := identity.ParseKeys(c.Keys)
	if err != nil {
		return Keys{}, fmt.Errorf("sealed: %w", err)
	}
	return Keys{Agent: agent, Own: own}, nil
}
