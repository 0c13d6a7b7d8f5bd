package fleet

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/agentd/agentd/approval"
	"github.com/agentd/agentd/internal/strictyaml"
)

const (
	// maxApproverName bounds the name of an approver.
	maxApproverName = 128
	// maxKeyFileBytes is more than the longest public key takes.
	maxKeyFileBytes = 16 << 10
)

// An Approver is a person whose signature decides about calls that wait.
type Approver struct {
	// Name is what records call the person. Two keys may have the same.
	Name string
	// Key is the public key as in an authorized_keys file, without its comment.
	Key string
	// KeyFile is the absolute path that it was read from, or "".
	KeyFile string
	// Position is where the entry stands.
	Position Position
}

// decodeApprovers reads security.approvers; nil if there is no list. An empty one is a
// fault: nobody could ever approve a call.
func decodeApprovers(v strictyaml.Value, p paths) []Approver {
	if !v.Present() {
		return nil
	}
	var all []Approver
	first := map[string]string{}
	for _, item := range v.AtLeastOne("approver").List() {
		o := item.Object()
		a := Approver{Name: o.Need("name").Text(), Position: item.Position()}
		if a.Name != "" && !approverName(a.Name) {
			o.Get("name").Fault(fmt.Sprintf("%.64q cannot name an approver", a.Name), "letters, digits and . _ + @ -, such as ann@example.org")
		}
		key, file := o.Get("key"), o.Get("keyFile")
		switch {
		case key.Present() == file.Present():
			item.Fault("an approver has either key or keyFile", "write the line of the person's .pub file after key:")
		case key.Present():
			a.Key = approverKey(key, key.Text())
		default:
			a.KeyFile = p.carried(file)
			a.Key = approverKeyFile(file, a.KeyFile)
		}
		o.Done()
		if before, twice := first[a.Key]; twice && a.Key != "" {
			item.Fault(fmt.Sprintf("the key of %s is listed before, as that of %s", a.Name, before), "a key belongs to one person")
		}
		first[a.Key] = a.Name
		all = append(all, a)
	}
	return all
}

// approverName keeps names apart from the syntax of an allowed_signers file, so that the
// list can be written as one.
func approverName(name string) bool {
	if len(name) > maxApproverName {
		return false
	}
	for i := range len(name) {
		c := name[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && !strings.ContainsRune("._+@-", rune(c)) {
			return false
		}
	}
	return true
}

// approverKeyFile reads the key in a .pub file. v is where the file is named.
func approverKeyFile(v strictyaml.Value, path string) string {
	if path == "" {
		return "" // said already
	}
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxKeyFileBytes {
		v.Fault(fmt.Sprintf("the file has %d bytes, and a public key has fewer than %d", info.Size(), maxKeyFileBytes), "")
		return ""
	}
	text, err := os.ReadFile(path)
	if err != nil {
		v.Fault(err.Error(), "name the person's .pub file")
		return ""
	}
	return approverKey(v, string(text))
}

// approverKey returns the key in the form in which two of them can be compared.
func approverKey(v strictyaml.Value, line string) string {
	if line == "" {
		return "" // said already
	}
	key, err := approval.ParseKey(line)
	if err != nil {
		v.Fault(err.Error(), "ssh-ed25519, ecdsa, rsa of 2048 bits or more, and their sk- forms")
		return ""
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// ApproverKeys returns the approvers with their keys parsed. A list that was loaded has
// no faulty ones.
func (s *Security) ApproverKeys() []approval.Approver {
	var all []approval.Approver
	for _, a := range s.Approvers {
		if key, err := approval.ParseKey(a.Key); err == nil {
			all = append(all, approval.Approver{Name: a.Name, Key: key})
		}
	}
	return all
}
