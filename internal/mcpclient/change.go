package mcpclient

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agentd/agentd/internal/jcs"
	"github.com/agentd/agentd/internal/truncate"
)

// A Change is one difference between a pinned contract and a served one.
type Change struct {
	// Part is the part of the contract: description, inputSchema, outputSchema,
	// annotations; or tool, where the server does not serve the tool at all.
	Part string `json:"part"`
	// Path leads to it within the part, as an RFC 6901 pointer.
	Path string `json:"path,omitempty"`
	// Pinned and Served are the two, shortened; "" stands for what is not there.
	Pinned string `json:"pinned,omitempty"`
	Served string `json:"served,omitempty"`
	// Note is in place of Pinned and Served where a difference is no matter of places.
	Note string `json:"note,omitempty"`
}

// String returns the change in words.
func (c Change) String() string {
	switch {
	case c.Note != "":
		return c.Part + ": " + c.Note
	case c.Part == PartTool:
		return "the server does not serve it any more"
	case c.Pinned == "":
		return fmt.Sprintf("%s%s is new: %s", c.Part, c.Path, c.Served)
	case c.Served == "":
		return fmt.Sprintf("%s%s is gone, which was %s", c.Part, c.Path, c.Pinned)
	}
	return fmt.Sprintf("%s%s was %s and is %s", c.Part, c.Path, c.Pinned, c.Served)
}

// places says where changes are, for a caller: it may be a model, and is told nothing that the
// server would have it read. What has no counterpart in the pinned contract has no name in it.
func places(changes []Change) string {
	var all []string
	for _, c := range changes {
		text := c.Part + c.Path
		switch {
		case c.Note != "" || c.Part == PartTool:
			text = c.String()
		case c.Pinned == "":
			text = c.Part
		}
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, "; ")
}

// describe joins changes for the log and for the operator.
func describe(changes []Change) string {
	texts := make([]string, len(changes))
	for i, c := range changes {
		texts[i] = c.String()
	}
	return strings.Join(texts, "; ")
}

// The parts of a contract that are no schemas or annotations: see [Change].
const (
	PartTool        = "tool"
	PartDescription = "description"
)

const (
	maxChanges = 8
	maxShown   = 120
)

// Changes lists how served differs from pinned, at most a few of the places in each part.
// It is empty if and only if both have one digest.
func Changes(pinned, served Contract) []Change {
	var all []Change
	if pinned.Description != served.Description {
		all = append(all, TextChange(PartDescription, "", &pinned.Description, &served.Description))
	}
	for _, part := range []struct {
		name           string
		pinned, served json.RawMessage
	}{
		{"inputSchema", pinned.InputSchema, served.InputSchema},
		{"outputSchema", pinned.OutputSchema, served.OutputSchema},
		{"annotations", pinned.Annotations, served.Annotations},
	} {
		d := differ{part: part.name}
		d.compare("", part.pinned, part.served)
		all = append(all, d.found...)
		if d.more {
			all = append(all, Change{Part: part.name, Note: "it differs in further places"})
		}
	}
	return all
}

// TextChange returns the change of a text, nil where there is none.
func TextChange(part, path string, pinned, served *string) Change {
	c := Change{Part: part, Path: path}
	switch {
	case pinned == nil:
		c.Served = strconv.Quote(truncate.String(*served, maxShown))
	case served == nil:
		c.Pinned = strconv.Quote(truncate.String(*pinned, maxShown))
	default:
		p, s := diverging(*pinned, *served)
		c.Pinned, c.Served = strconv.Quote(p), strconv.Quote(s)
	}
	return c
}

// diverging shortens two texts to where they part, so that a change at the end of a long
// description can be seen.
func diverging(a, b string) (string, string) {
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] {
		same++
	}
	const before = 20
	from := 0
	if same > before && (len(a) > maxShown || len(b) > maxShown) {
		from = same - before
	}
	cut := func(s string) string {
		if from > 0 {
			return "…" + truncate.String(strings.ToValidUTF8(s[from:], ""), maxShown)
		}
		return truncate.String(s, maxShown)
	}
	return cut(a), cut(b)
}

// A differ compares JSON values.
type differ struct {
	part  string
	found []Change
	more  bool // than fit
}

func (d *differ) add(path string, pinned, served json.RawMessage) {
	d.found = append(d.found, Change{Part: d.part, Path: path, Pinned: short(pinned), Served: short(served)})
}

func short(raw json.RawMessage) string {
	if raw == nil {
		return ""
	}
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		return truncate.String(string(raw), maxShown)
	}
	return truncate.String(compact.String(), maxShown)
}

// compare goes down where both are objects, or arrays of one length.
func (d *differ) compare(path string, pinned, served json.RawMessage) {
	if d.more || equal(pinned, served) {
		return
	}
	if d.more = len(d.found) >= maxChanges; d.more {
		return
	}
	var po, so map[string]json.RawMessage
	if json.Unmarshal(pinned, &po) == nil && json.Unmarshal(served, &so) == nil && po != nil && so != nil {
		names := maps.Clone(po)
		maps.Copy(names, so)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			d.compare(path+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), po[name], so[name])
		}
		return
	}
	var pa, sa []json.RawMessage
	if json.Unmarshal(pinned, &pa) == nil && json.Unmarshal(served, &sa) == nil && len(pa) == len(sa) && len(pa) > 0 {
		for i := range pa {
			d.compare(path+"/"+strconv.Itoa(i), pa[i], sa[i])
		}
		return
	}
	d.add(path, pinned, served)
}

// equal reports whether two values have one canonical form.
func equal(a, b json.RawMessage) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	ca, erra := jcs.Append(nil, a)
	cb, errb := jcs.Append(nil, b)
	return erra == nil && errb == nil && bytes.Equal(ca, cb)
}
