package schema

import "github.com/agentd/agentd/internal/ijson"

// This file steps through the parts of a value for a reporter. A branch of allOf is gone
// through whether it fails or not, so that each step is paid for: a schema may have
// thousands of them. Without a budget, what is not reached passes for absent, of which
// [reporter.add] lists nothing.

// stepsOfPart is what a member or an element takes beside its bytes.
const stepsOfPart = 16

// members calls f with the name and the offset of the value of each member of
// the object at i. name is valid only during the call. f returns the end of the value
// if it knows that, and a negative number otherwise.
func (p *reporter) members(i int, f func(name []byte, value int) (end int)) {
	data := p.data
	var buffer []byte
	for i = ijson.SkipSpace(data, i+1); data[i] != '}'; {
		end, escaped, _ := ijson.ScanString(data, i)
		if !p.run.Spend(stepsOfPart + end - i) {
			return
		}
		name := data[i+1 : end-1]
		if escaped {
			buffer = ijson.AppendUnquoted(buffer[:0], name)
			name = buffer
		}
		value := ijson.SkipSpace(data, ijson.SkipSpace(data, end)+1)
		p.key = i
		after := f(name, value)
		if after < 0 {
			after = p.end(value)
		}
		if i = ijson.SkipSpace(data, after); data[i] == ',' {
			i = ijson.SkipSpace(data, i+1)
		}
	}
}

// items lists where the elements of the array at i start.
func (p *reporter) items(i int) (items []int) {
	data := p.data
	for i = ijson.SkipSpace(data, i+1); data[i] != ']'; {
		if !p.run.Spend(stepsOfPart) {
			return items
		}
		items = append(items, i)
		if i = ijson.SkipSpace(data, p.end(i)); data[i] == ',' {
			i = ijson.SkipSpace(data, i+1)
		}
	}
	return items
}

// small is the size of an array or object, in bytes, up to which counting brackets is
// faster than to look up where it ends. Each level of nesting counts them again, of
// which so many bytes hold few.
const small = 256

// end returns the end of the value at i.
func (p *reporter) end(i int) int {
	limit := min(i+small, len(p.data))
	if c := p.data[i]; c != '[' && c != '{' {
		limit = len(p.data)
	}
	end := ijson.SkipValid(p.data[:limit], i)
	p.run.Spend(end - i)
	if end < limit || limit == len(p.data) {
		return end
	}
	if _, known := p.ends[i]; !known {
		p.measure(i)
	}
	return p.ends[i]
}

// measure notes where the large array or object at i ends, and all large ones inside. It
// passes over those that are known, so that no byte is read on every level above it.
func (p *reporter) measure(i int) {
	if p.ends == nil {
		p.ends = map[int]int{}
	}
	data := p.data
	var open []int
	for i < len(data) {
		switch data[i] {
		case '"':
			i, _, _ = ijson.ScanString(data, i)
			continue
		case '{', '[':
			if end, known := p.ends[i]; known {
				i = end
				continue
			}
			open = append(open, i)
		case '}', ']':
			last := len(open) - 1
			if i+1-open[last] >= small {
				p.ends[open[last]] = i + 1
			}
			if open = open[:last]; last == 0 {
				return
			}
		}
		i++
	}
}
