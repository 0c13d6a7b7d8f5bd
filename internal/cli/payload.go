package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/agentd/agentd/daemon/control"
)

// maxPayloadBytes is the largest payload that fits into a request to the control
// API; the rest of that request needs some room, too.
const maxPayloadBytes = control.MaxRequestBytes - 64<<10

// Payload reads a JSON payload from a command-line argument: the text itself,
// @file for the content of a file, or - for standard input. It checks that the
// text is JSON; schemas are checked elsewhere.
func (e *Env) Payload(arg string) (json.RawMessage, error) {
	var data []byte
	var err error
	name := "the payload"
	switch {
	case arg == "-":
		name = "standard input"
		data, err = readPayload(e.Stdin)
	case strings.HasPrefix(arg, "@"):
		name = arg[1:]
		var file *os.File
		if file, err = os.Open(name); err == nil {
			data, err = readPayload(file)
			err = errors.Join(err, file.Close())
		}
	default:
		data = []byte(arg)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if !json.Valid(data) {
		return nil, fmt.Errorf("%s is not JSON; give it as an argument in quotes, as @file, or as - for standard input", name)
	}
	return data, nil
}

// readPayload reads at most maxPayloadBytes: a larger payload would be refused
// by every agent, so there is no point in holding it in memory.
func readPayload(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxPayloadBytes+1))
	if err == nil && len(data) > maxPayloadBytes {
		return nil, fmt.Errorf("larger than %d MiB, which is more than any agent accepts", maxPayloadBytes>>20)
	}
	return data, err
}

// ReadFile reads a file of at most limit bytes.
func ReadFile(name string, limit int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s is larger than %d bytes", name, limit)
	}
	return text, errors.Join(err, file.Close())
}
