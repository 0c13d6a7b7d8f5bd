package fleet

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// sortedKeys makes text that is made from a map the same every time.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// A Listing is a summary of a fleet, in the form of the reference system's
// `fleet list --json`.
type Listing struct {
	Root     string         `json:"root"`
	Manifest ListedManifest `json:"manifest"`
	Agents   []ListedAgent  `json:"agents"`
}

// ListedManifest identifies fleet.yaml.
type ListedManifest struct {
	Name    string `json:"name"`
	Version int    `json:"version"`
}

// A ListedAgent is one member.
type ListedAgent struct {
	ID string `json:"id"`
	// Path is relative to the root, with slashes.
	Path string `json:"path"`
	Env  string `json:"env"`
	// Capabilities are names, in declared order; empty for a client.
	Capabilities []string `json:"capabilities"`
}

// List returns the fleet's members in declared order.
func (f *Fleet) List() Listing {
	l := Listing{Root: f.Root, Manifest: ListedManifest{Name: f.Name, Version: f.Version}, Agents: []ListedAgent{}}
	for _, m := range f.Members {
		a := ListedAgent{ID: m.ID, Path: f.rel(m.Dir), Env: m.Env, Capabilities: []string{}}
		if !m.ClientOnly() {
			a.Capabilities = m.Capabilities.Names()
		}
		l.Agents = append(l.Agents, a)
	}
	return l
}

// rel returns a path below the root, relative and with slashes.
func (f *Fleet) rel(abs string) string {
	rel, err := filepath.Rel(f.Root, abs)
	if err != nil {
		return abs
	}
	return filepath.ToSlash(rel)
}

// WriteText writes the listing for people.
func (l Listing) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "fleet: %s\nroot: %s\nagents (%d):\n", l.Manifest.Name, l.Root, len(l.Agents))
	for _, a := range l.Agents {
		listed := "(client-only)"
		if len(a.Capabilities) > 0 {
			listed = fmt.Sprintf("capabilities=%d", len(a.Capabilities))
		}
		fmt.Fprintf(&b, "  • %s  env=%s %s\n", a.ID, a.Env, listed)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// A Catalogue lists the capabilities of a whole fleet, in the form of the
// reference system's `fleet capabilities --json`.
type Catalogue struct {
	// Agents is keyed by address.
	Agents map[string][]ListedCapability `json:"agents"`
	// ClientOnly are the addresses of members that offer nothing.
	ClientOnly []string `json:"clientOnly"`
}

// A ListedCapability is one capability.
type ListedCapability struct {
	Name string `json:"name"`
	// TimeoutMs is 0 if the capability leaves the timeout to its caller.
	TimeoutMs   int64  `json:"timeoutMs,omitempty"`
	Idempotent  bool   `json:"idempotent,omitempty"`
	Description string `json:"description,omitempty"`
	// Input and Output are the digests of the contracts, "" for loose JSON.
	Input  string `json:"inputDigest,omitempty"`
	Output string `json:"outputDigest,omitempty"`
}

// Capabilities returns the capabilities of all members.
func (f *Fleet) Capabilities() Catalogue {
	c := Catalogue{Agents: make(map[string][]ListedCapability), ClientOnly: []string{}}
	for _, m := range f.Members {
		if m.ClientOnly() {
			c.ClientOnly = append(c.ClientOnly, string(m.Address))
			continue
		}
		listed := make([]ListedCapability, 0, len(m.Capabilities.Capabilities))
		for _, x := range m.Capabilities.Capabilities {
			o := ListedCapability{Name: x.Name, TimeoutMs: x.Timeout.Milliseconds(), Idempotent: x.Idempotent, Description: x.Description}
			if x.Input != nil {
				o.Input = x.Input.Digest
			}
			if x.Output != nil {
				o.Output = x.Output.Digest
			}
			listed = append(listed, o)
		}
		c.Agents[string(m.Address)] = listed
	}
	return c
}

// WriteText writes the catalogue for people, agents by address.
func (c Catalogue) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, address := range sortedKeys(c.Agents) {
		fmt.Fprintf(&b, "%s\n", address)
		for _, o := range c.Agents[address] {
			fmt.Fprintf(&b, "  • %s%s\n", o.Name, o.details())
		}
	}
	for _, address := range c.ClientOnly {
		fmt.Fprintf(&b, "%s (client-only)\n", address)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// details returns what follows an offer's name in text: remarks in
// parentheses, and the description on one line.
func (o ListedCapability) details() string {
	var parts []string
	if o.Input == "" && o.Output == "" {
		parts = append(parts, "untyped")
	}
	if o.TimeoutMs > 0 {
		parts = append(parts, fmt.Sprintf("timeout=%dms", o.TimeoutMs))
	}
	if o.Idempotent {
		parts = append(parts, "idempotent")
	}
	text := ""
	if len(parts) > 0 {
		text = " (" + strings.Join(parts, ", ") + ")"
	}
	if o.Description != "" {
		text += ": " + strings.Join(strings.Fields(o.Description), " ")
	}
	return text
}
