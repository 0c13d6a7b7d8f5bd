package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/mcpaccess"
)

// Paths are where the agents of one fleet keep their files and sockets.
type Paths struct {
	// State holds what must survive a restart: a folder per agent.
	State string
	// Runtime holds the sockets of running agents.
	Runtime string
}

// DefaultPaths follows the XDG base directory specification: state goes to
// $XDG_STATE_HOME/agentd (default ~/.local/state/agentd), sockets to
// $XDG_RUNTIME_DIR/agentd (default a folder in the temporary folder that is named
// after the user). Below them each fleet has a folder named after it and a hash of its
// root, so that two checkouts of one fleet do not share state. The hash has four
// bytes: socket paths have a limit of about a hundred.
func DefaultPaths(fleetName, root string, getenv func(string) string) (Paths, error) {
	key := sha256.Sum256([]byte(root))
	folder := fleetName + "-" + hex.EncodeToString(key[:4])
	state := getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // the specification ignores relative paths
		home := getenv("HOME")
		if home == "" {
			return Paths{}, errors.New("neither XDG_STATE_HOME nor HOME is set: there is no folder for the audit log")
		}
		state = filepath.Join(home, ".local", "state")
	}
	runtime := getenv("XDG_RUNTIME_DIR")
	if !filepath.IsAbs(runtime) {
		// The user's id keeps users of a shared temporary folder apart.
		own := filepath.Join(os.TempDir(), fmt.Sprintf("agentd-%d", os.Getuid()))
		return Paths{State: filepath.Join(state, "agentd", folder), Runtime: filepath.Join(own, folder)}, nil
	}
	return Paths{State: filepath.Join(state, "agentd", folder), Runtime: filepath.Join(runtime, "agentd", folder)}, nil
}

// AuditDB is the path of an agent's audit log.
func (p Paths) AuditDB(agent string) string { return filepath.Join(p.State, agent, "audit.db") }

// Witness is the folder where an agent keeps what it has co-signed as a witness.
func (p Paths) Witness(agent string) string { return filepath.Join(p.State, agent, "witness") }

// AuditDB is the path of a member's audit log: that of fleet.yaml, or else one in p.
func AuditDB(m *fleet.Member, p Paths) string {
	if m.AuditDB != "" {
		return m.AuditDB
	}
	return p.AuditDB(m.ID)
}

// Identity is the path of an agent's own keys.
func (p Paths) Identity(agent string) string { return filepath.Join(p.State, agent, "identity.json") }

// MCPLogins is the folder of an agent's logins at MCP servers.
func (p Paths) MCPLogins(agent string) string { return filepath.Join(p.State, agent, mcpaccess.Folder) }

// Idempotency is the path of an agent's remembered answers to keyed requests.
func (p Paths) Idempotency(agent string) string {
	return filepath.Join(p.State, agent, "idempotency.db")
}

// Socket is the path of an agent's control socket.
func (p Paths) Socket(agent string) string { return filepath.Join(p.Runtime, agent+".sock") }

// marks is the path of the note about the processes of an agent's skills.
func (p Paths) marks(agent string) string { return filepath.Join(p.Runtime, agent+".marks") }

// Running lists the agents whose control sockets answer, sorted.
func (p Paths) Running(ctx context.Context) ([]string, error) {
	entries, err := os.ReadDir(p.Runtime)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("the agents are another user's: run this as the user that agentd runs as: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("running agents: %w", err)
	}
	var ids []string
	for _, e := range entries {
		// A socket that does not answer was left behind by a process that was killed.
		if id, ok := strings.CutSuffix(e.Name(), ".sock"); ok && control.Answers(ctx, p.Socket(id)) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
