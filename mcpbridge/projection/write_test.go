package projection

// Write returns what a model writes by the projection to mean some arguments. ok is false
// where it cannot, or where it would mean something else.
func (p *Projected) Write(args []byte) (out []byte, ok bool) { return p.plan.write(args) }

// Rewrites reports whether any value is written in another way than it is meant.
func (p *Projected) Rewrites() bool { return p.plan != nil }

// write is the other direction of restore.
func (p *plan) write(raw []byte) (out []byte, ok bool) {
	if p == nil {
		return raw, true
	}
	switch p.kind {
	case text:
		return quoted(string(raw)), true
	case object:
		if raw[0] == '{' {
			return p.writeObject(raw)
		}
	case array:
		if raw[0] == '[' {
			return p.writeArray(raw)
		}
	case branched:
		for _, b := range p.branches {
			if out, ok := b.plan.write(raw); ok && b.fits.Valid(out) && string(p.restore(out)) == string(raw) {
				return out, true
			}
		}
		return raw, false
	case wrapped:
		inner, ok := p.rest.write(raw)
		return writeObject([]field{{wrapper, inner}}), ok
	}
	return raw, true
}

func (p *plan) writeObject(raw []byte) (out []byte, ok bool) {
	sent := map[string]string{}
	for name, m := range p.members {
		sent[m.name] = name
	}
	var fields []field
	there := map[string]bool{}
	ok = true
	for name, value := range membersOf(raw) {
		at, declared := sent[name]
		if !declared {
			out, fine := p.rest.write(value)
			fields, ok = append(fields, field{name, out}), ok && fine
			continue
		}
		there[at] = true
		m := p.members[at]
		written, fine := m.value.write(value)
		if m.absent && string(written) == "null" {
			fine = false
		}
		fields, ok = append(fields, field{at, written}), ok && fine
	}
	for name, m := range p.members {
		if m.absent && !there[name] {
			fields = append(fields, field{name, []byte("null")})
		}
	}
	return writeObject(fields), ok
}

func (p *plan) writeArray(raw []byte) (out []byte, ok bool) {
	var all [][]byte
	ok = true
	for _, element := range elementsOf(raw) {
		written, fine := p.rest.write(element)
		all, ok = append(all, written), ok && fine
	}
	return writeArray(all), ok
}
