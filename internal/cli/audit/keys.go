package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/internal/cli"
)

// maxKeyFileBytes is far above the size of any .pub file: one line for each key
// that a log ever had.
const maxKeyFileBytes = 1 << 20

// readKeys reads the values of a flag, each a verifier key or a file of them.
func readKeys(flag string, values []string) ([]string, error) {
	var keys []string
	for _, value := range values {
		if _, err := checkpoint.NewKeys(value); err == nil {
			keys = append(keys, value)
			continue
		}
		text, err := cli.ReadFile(value, maxKeyFileBytes)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, cli.Usage("%s: %q is neither a verifier key, <name>+<hash>+<base64>, nor a file", flag, value)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		// A .pub file has a line for each key that the log ever had; all of them
		// are trusted, since the log was signed with one after another.
		own := strings.Fields(string(text))
		if _, err := checkpoint.NewKeys(own...); err != nil || len(own) == 0 {
			return nil, fmt.Errorf("%s: %s is no file of verifier keys: give the .pub file of a log", flag, value)
		}
		keys = append(keys, own...)
	}
	return keys, nil
}
