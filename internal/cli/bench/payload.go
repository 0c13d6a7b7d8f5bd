package bench

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/schema/contain"
)

// sample makes a payload that the capability's inputSchema accepts.
func (b *bench) sample() (json.RawMessage, error) {
	f, err := b.env.LoadFleet(fleet.LoadOptions{})
	if err != nil {
		return nil, fmt.Errorf("%w (give a payload with --payload, which needs no files)", err)
	}
	document := expected(f, cli.ID(b.request.Caller.Agent), b)
	if document == nil {
		return nil, fmt.Errorf("no file of the fleet %s says what %s accepts: give a payload with --payload", f.Name, b.peer)
	}
	c, ok := document.Lookup(b.capability)
	if !ok {
		return nil, fmt.Errorf("%s declares no capability %q", b.peer, b.capability)
	}
	if c.Input == nil || c.Input.Schema == nil {
		return json.RawMessage("{}"), nil // any JSON is accepted, or another engine judges
	}
	value, err := contain.Sample(c.Input.Schema)
	if err != nil {
		return nil, fmt.Errorf("no sample of what %s accepts: %w; give a payload with --payload", b.capability, err)
	}
	return value, nil
}

// expected is what the calling member expects of the peer, or another member if it is
// not named.
func expected(f *fleet.Fleet, caller string, b *bench) *capability.Document {
	for _, m := range f.Members {
		if p, ok := m.Peer(b.peer); ok && p.Document != nil && (caller == "" || m.ID == caller) {
			return p.Document
		}
	}
	return nil
}

// parseRate reads a number of calls a second, such as 500/s, 30/m or 500.
func parseRate(text string) (float64, error) {
	if text == "" {
		return DefaultRate, nil
	}
	number, unit, _ := strings.Cut(text, "/")
	per := map[string]float64{"": 1, "s": 1, "m": 60, "h": 3600}[unit]
	rate, err := strconv.ParseFloat(number, 64)
	if per != 0 {
		rate /= per
	}
	if err != nil || per == 0 || !(rate >= leastRate) || rate > mostRate {
		return 0, cli.Usage("--rate: must be calls a second such as 500/s or 500, a minute such as 30/m or an hour, at least 1/h and at most %d/s, not %q", mostRate, text)
	}
	return rate, nil
}
