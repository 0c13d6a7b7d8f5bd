package broker

import (
	"errors"
	"path/filepath"
)

// DefaultStoreDir is where a user's broker keeps its streams, by the XDG base
// directory specification: $XDG_STATE_HOME/agentd/broker, and the home folder's
// .local/state/agentd/broker without it.
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
