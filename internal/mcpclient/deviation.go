package mcpclient

import "slices"

// A Deviation is a pinned tool that the server serves otherwise.
type Deviation struct {
	Tool    string   `json:"tool"`
	Changes []Change `json:"changes"`
	// Refused says that the tool is not called. It is, where the description alone has
	// changed and that is accepted.
	Refused bool `json:"refused"`
}

// Describe returns it in words.
func (d Deviation) Describe() string { return "its tool " + d.Tool + ": " + describe(d.Changes) }

// judge compares what the server serves with what was pinned. A list that is older than the
// last change of it lets no call go on.
func (c *Client) judge(tools listing, generation int64) {
	var found []Deviation
	for _, pinned := range c.opts.Pinned {
		d := c.compare(pinned, tools)
		if len(d.Changes) > 0 {
			found = append(found, d)
		}
	}
	if c.life.Err() != nil {
		return // what was found is worth nothing, and nobody waits for it
	}
	var further []string
	for name := range tools {
		if _, ok := c.pinned[name]; !ok {
			further = append(further, name)
		}
	}
	slices.Sort(further)
	c.mu.Lock()
	before, knew := c.deviations, c.further
	c.deviations, c.further = found, further
	c.mu.Unlock()
	c.reportDeviations(before, found)
	if c.opts.Pinned != nil && len(further) > 0 && !slices.Equal(knew, further) {
		c.log.Info("an MCP server has tools that are not pinned, and not offered", "tools", further)
	}
	c.mu.Lock()
	if c.generation.Load() == generation {
		c.settle()
	}
	c.mu.Unlock()
	c.notify()
}

// compare holds one tool against its pin.
func (c *Client) compare(pinned Contract, tools listing) Deviation {
	served, ok := tools[pinned.Name]
	d := Deviation{Tool: pinned.Name}
	switch {
	case c.opts.Judge != nil && ok:
		d.Changes, d.Refused = c.opts.Judge(c.life, pinned, &served)
	case c.opts.Judge != nil:
		d.Changes, d.Refused = c.opts.Judge(c.life, pinned, nil)
	case ok:
		d.Changes = Changes(pinned, served)
		d.Refused = !c.opts.AcceptDescriptions ||
			slices.ContainsFunc(d.Changes, func(ch Change) bool { return ch.Part != PartDescription })
	default:
		d.Changes, d.Refused = []Change{{Part: PartTool}}, true
	}
	return d
}

// reportDeviations says what has begun to deviate, or does so in another way, and what has
// ended to.
func (c *Client) reportDeviations(before, now []Deviation) {
	for _, d := range now {
		if was := find(before, d.Tool); was != nil && slices.Equal(was.Changes, d.Changes) {
			continue
		}
		text := "a tool of an MCP server has another contract than was pinned, and is refused"
		if !d.Refused {
			text = "a tool of an MCP server has another description than was pinned"
		}
		c.log.Warn(text, "tool", d.Tool, "changes", describe(d.Changes))
	}
	for _, d := range before {
		if find(now, d.Tool) == nil {
			c.log.Info("a tool of an MCP server has its pinned contract again", "tool", d.Tool)
		}
	}
}

func find(all []Deviation, tool string) *Deviation {
	if i := slices.IndexFunc(all, func(d Deviation) bool { return d.Tool == tool }); i >= 0 {
		return &all[i]
	}
	return nil
}
