package sealed_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"filippo.io/age"

	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/identity/sealed"
)

// The keys of an agent go to another replica, which alone can open them.
func Example() {
	dir, err := os.MkdirTemp("", "sealed")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	replica, _ := age.GenerateX25519Identity()

	own, _ := identity.Store{Path: filepath.Join(dir, "identity.json")}.Ensure(time.Now())
	to, _ := sealed.ParseRecipients(replica.Recipient().String())
	data, _ := sealed.Seal(sealed.Keys{Agent: "agent://desk", Own: own}, to...)

	keys, err := sealed.Open(data, replica)
	fmt.Println(keys.Agent, len(keys.Own), keys.Own[0].Public == own[0].Public, err)
	// Output: agent://desk 1 true <nil>
}
