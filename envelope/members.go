package envelope

import "github.com/agentd/agentd/internal/ijson"

// members iterates over the members of the object that begins at data[i]. After
// next returns true, the caller must set i to where the value ends, or err.
type members struct {
	data  []byte
	i     int
	begun bool
	key   span // the member's name
	value int  // where its value begins
	err   error
}

// next moves to the next member. It returns false at the end of the object and
// on an error, which err then holds.
func (m *members) next() bool {
	if m.err != nil || !m.separator() {
		return false
	}
	if m.i >= len(m.data) || m.data[m.i] != '"' {
		return m.fail("expected a member name")
	}
	end, escaped, err := ijson.ScanString(m.data, m.i)
	if err != nil {
		m.err = err
		return false
	}
	m.key = span{start: m.i + 1, end: end - 1, escaped: escaped}
	m.i = ijson.SkipSpace(m.data, end)
	if m.i >= len(m.data) || m.data[m.i] != ':' {
		return m.fail("expected ':' after a member name")
	}
	m.value = ijson.SkipSpace(m.data, m.i+1)
	return true
}

// separator moves past a brace or comma to where the next member's name must
// begin. It returns false behind the closing brace and on an error.
func (m *members) separator() bool {
	if m.i >= len(m.data) {
		return m.fail("unexpected end of input")
	}
	if !m.begun {
		m.begun = true
		m.i = ijson.SkipSpace(m.data, m.i+1) // past the brace
		if m.i < len(m.data) && m.data[m.i] == '}' {
			m.i++
			return false
		}
		return true
	}
	m.i = ijson.SkipSpace(m.data, m.i)
	switch {
	case m.i < len(m.data) && m.data[m.i] == ',':
		m.i = ijson.SkipSpace(m.data, m.i+1)
		return true
	case m.i < len(m.data) && m.data[m.i] == '}':
		m.i++
		return false
	}
	return m.fail("expected ',' or '}' after a member")
}

func (m *members) fail(msg string) bool {
	m.err = &ijson.SyntaxError{Offset: m.i, Msg: msg}
	return false
}
