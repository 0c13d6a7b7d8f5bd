package broker

import (
	"errors"
	"path/filepath"
)

// DefaultStoreDir returns the folder in which a user's broker keeps its streams, by
// the XDG base directory specification: $XDG_STATE_HOME/agentd/broker, or
// ~/.local/state/agentd/broker without that variable.
func DefaultStoreDir(getenv func(string) string) (string, error) {
	state := getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // the specification ignores relative paths
		home := getenv("HOME")
		if home == "" {
			return "", errors.New("neither XDG_STATE_HOME nor HOME is set: nowhere to keep streams")
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "agentd", "broker"), nil
}
